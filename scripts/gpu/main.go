// Gpu is the part of the GPU check that makes its container image: this
// machine's busybox, the probe, and the C library that the probe and the
// driver's own programs need. It writes an OCI layout.
package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"gbatch/oci/image/imagetest"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: gpu PROBE LAYOUT")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "make the GPU check's image:", err)
		os.Exit(1)
	}
}

func run(probe, layout string) error {
	files := []imagetest.File{{Name: "opt/"}}
	if err := add(&files, probe, "opt/probe"); err != nil {
		return err
	}
	loader, err := interpreter(probe)
	if err != nil {
		return err
	}
	dirs := map[string]bool{}
	put := func(from, to string) error {
		to = strings.TrimPrefix(to, "/")
		for _, dir := range parents(to) {
			if !dirs[dir] {
				dirs[dir] = true
				files = append(files, imagetest.File{Name: dir + "/"})
			}
		}
		return add(&files, from, to)
	}
	if err := put(loader, loader); err != nil {
		return err
	}
	// What the driver's library and nvidia-smi are linked to.
	for _, name := range []string{"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libgcc_s.so.1"} {
		out, err := exec.Command("gcc", "-print-file-name="+name).Output()
		if err != nil {
			return fmt.Errorf("find %s: %w", name, err)
		}
		from, err := filepath.Abs(strings.TrimSpace(string(out)))
		if err != nil {
			return err
		}
		if err := put(from, filepath.Join("/lib", triplet(), name)); err != nil {
			return err
		}
	}
	img, err := imagetest.Build(imagetest.Options{Busybox: true, Layers: [][]imagetest.File{files}, Config: v1.Config{
		Cmd: []string{"/opt/probe"}, Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
	}})
	if err != nil {
		return err
	}
	_, err = imagetest.WriteLayout(layout, img, "gpu")
	return err
}

func add(files *[]imagetest.File, from, to string) error {
	body, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	*files = append(*files, imagetest.File{Name: to, Mode: 0o755, Body: body})
	return nil
}

// parents are the directories above a path, outermost first.
func parents(name string) []string {
	var list []string
	for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
		list = append([]string{dir}, list...)
	}
	return list
}

// interpreter is the loader that a program names.
func interpreter(program string) (string, error) {
	f, err := elf.Open(program)
	if err != nil {
		return "", err
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			b, err := io.ReadAll(p.Open())
			return strings.TrimRight(string(b), "\x00"), err
		}
	}
	return "", errors.New("the probe is static and could not open the driver's library")
}

// triplet is the directory of libraries that this machine's loader looks in.
func triplet() string {
	out, err := exec.Command("gcc", "-print-multiarch").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
