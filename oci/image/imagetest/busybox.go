package imagetest

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"strings"
)

// errNoBusybox says that this machine has no static busybox.
var errNoBusybox = errors.New("no static busybox found: install the package busybox-static")

// Busybox returns the files of a small root file system: /bin/busybox of this
// machine with its applets as links, /etc/passwd and /etc/group with root,
// nobody and a user "user" (1000), /tmp, /root and empty mount points.
func Busybox() ([]File, error) {
	body, applets, err := findBusybox()
	if err != nil {
		return nil, err
	}
	files := []File{
		{Name: "bin/"}, {Name: "dev/"}, {Name: "etc/"}, {Name: "home/"}, {Name: "home/user/", UID: 1000, GID: 1000},
		{Name: "proc/"}, {Name: "root/", Mode: 0o700}, {Name: "sbin", Link: "bin"}, {Name: "sys/"},
		{Name: "tmp/", Mode: 0o1777}, {Name: "usr/"}, {Name: "usr/bin", Link: "../bin"}, {Name: "usr/sbin", Link: "../bin"},
		{Name: "var/"}, {Name: "var/tmp/", Mode: 0o1777},
		{Name: "etc/passwd", Body: []byte("root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n")},
		{Name: "etc/group", Body: []byte("root:x:0:\nuser:x:1000:\nvideo:x:44:user\nnogroup:x:65534:\n")},
		{Name: "bin/busybox", Mode: 0o755, Body: body},
	}
	for _, applet := range applets {
		if applet != "busybox" {
			files = append(files, File{Name: "bin/" + applet, Link: "busybox", Mode: 0o777})
		}
	}
	return files, nil
}

func findBusybox() (body []byte, applets []string, err error) {
	for _, dir := range []string{"/bin", "/usr/bin", "/usr/local/bin"} {
		name := path.Join(dir, "busybox")
		if !static(name) {
			continue
		}
		if body, err = os.ReadFile(name); err != nil {
			return nil, nil, err
		}
		list, err := exec.Command(name, "--list").Output()
		if err != nil {
			return nil, nil, fmt.Errorf("list applets of %s: %w", name, err)
		}
		return body, strings.Fields(string(list)), nil
	}
	return nil, nil, errNoBusybox
}

// static reports whether a program needs no dynamic loader.
func static(name string) bool {
	f, err := elf.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return false
		}
	}
	return true
}
