package oci_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gbatch/oci/draft"
	"gbatch/oci/overlay"
)

// Upper layers hide lower ones, in the order base first.
func TestLayers(t *testing.T) {
	for _, tc := range []struct {
		n    int
		deep bool // longer paths than fsconfig takes
	}{{2, false}, {127, false}, {overlay.MaxLayers, false}, {2, true}, {overlay.MaxLayers, true}} { // docker makes 127 at most
		n := tc.n
		t.Run(fmt.Sprint(n, tc.deep), func(t *testing.T) {
			b := newBox(t, "cat /which; ls /only | wc -l")
			name := "l"
			if tc.deep {
				name = filepath.Join(strings.Repeat("d", 200), strings.Repeat("e", 200))
				b.cfg.Scratch = filepath.Join(t.TempDir(), name)
				if err := os.MkdirAll(b.cfg.Scratch, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for i := range n - 1 {
				dir := filepath.Join(t.TempDir(), name)
				if err := os.MkdirAll(filepath.Join(dir, "only"), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(os.WriteFile(filepath.Join(dir, "which"), []byte(fmt.Sprintln(i)), 0o644),
					os.WriteFile(filepath.Join(dir, "only", fmt.Sprint(i)), nil, 0o644)); err != nil {
					t.Fatal(err)
				}
				b.cfg.Layers = append(b.cfg.Layers, dir)
			}
			exit, log := b.run()
			if f := exit.Failure; n == overlay.MaxLayers && f != nil && strings.Contains(f.Error(), "a kernel before 6.8 mounts at most") {
				t.Skip("SKIPPED, this kernel is too old: " + f.Error())
			}
			if want := fmt.Sprintf("%d\n%d\n", n-2, n-1); log != want {
				t.Errorf("output %q, want %q", log, want)
			}
		})
	}
}

// A 32-bit program asks the kernel by other numbers; the native filter knows
// only the machine's own and kills it, the compatible one lets it run.
func TestSeccompArchitectures(t *testing.T) {
	needContainers(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "i386"), i386Exit(7), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := exec.Command(filepath.Join(dir, "i386")).Run(); errors.Is(err, unix.ENOEXEC) {
		t.Skip("SKIPPED, this kernel runs no 32-bit programs:", err)
	}
	for mode, want := range map[draft.SeccompMode]int{draft.SeccompNative: 128 + int(unix.SIGSYS), draft.SeccompCompat: 7, draft.SeccompOff: 7} {
		t.Run(mode.String(), func(t *testing.T) {
			b := newBox(t, "")
			b.req.Command, b.req.Seccomp = []string{"/x/i386"}, mode
			b.req.Mounts = []draft.Mount{{Source: dir, Target: "/x"}}
			exit, _ := b.run()
			if exit.Code == 139 || exit.Failure != nil {
				t.Skipf("SKIPPED, this kernel runs no 32-bit programs: %+v", exit.Failure)
			}
			if exit.Code != want {
				t.Errorf("exit: %+v, want code %d", exit, want)
			}
		})
	}
}

// i386Exit is the smallest 32-bit ELF program: it ends with code.
func i386Exit(code byte) []byte {
	text := []byte{0xb8, 1, 0, 0, 0, 0xbb, code, 0, 0, 0, 0xcd, 0x80} // mov eax,1; mov ebx,code; int 0x80
	const base, headers = 0x08048000, 52 + 32
	var b bytes.Buffer
	b.Write([]byte{0x7f, 'E', 'L', 'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	size := uint32(headers + len(text))
	for _, v := range []any{
		uint16(2), uint16(3), uint32(1), uint32(base + headers), uint32(52), uint32(0), uint32(0),
		uint16(52), uint16(32), uint16(1), uint16(0), uint16(0), uint16(0),
		uint32(1), uint32(0), uint32(base), uint32(base), size, size, uint32(5), uint32(0x1000),
	} {
		binary.Write(&b, binary.LittleEndian, v)
	}
	b.Write(text)
	return b.Bytes()
}
