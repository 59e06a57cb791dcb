package oci_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"gbatch/oci"
	"gbatch/oci/overlay"
)

func TestResolveUser(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("etc/passwd", "root:x:0:0::/root:/bin/sh\nbob:x:1000:1001::/home/bob:/bin/sh\n"+
		"wide:x:4294967296:5::/:\nnobody:x:4294967295:5::/:\nless:x:-1:5::/:\nlarge:x:2147483648:4294967294::/:\ngroup:x:5:4294967296::/:\nin:x:5:5::/:\nmany:x:6:6::/:\n")
	write("etc/group", "root:x:0:\nusers:x:1001:\nvideo:x:44:bob\nfar:x:4294967297:in\n"+numbered(70_000, "g:x:1%d:many\n"))
	cases := map[string]struct {
		user   string
		groups []string
		want   oci.User
		err    string
	}{
		"root":      {user: "0", want: oci.User{Home: "/root"}},
		"name":      {user: "bob", want: oci.User{UID: 1000, GID: 1001, Groups: []uint32{44}, Home: "/home/bob"}},
		"namegroup": {user: "bob:video", want: oci.User{UID: 1000, GID: 44, Home: "/home/bob"}},
		"number":    {user: "1000", want: oci.User{UID: 1000, GID: 1001, Groups: []uint32{44}, Home: "/home/bob"}},
		"unknown":   {user: "77:88", want: oci.User{UID: 77, GID: 88, Home: "/"}},
		"groups":    {user: "0", groups: []string{"video", "5", "video"}, want: oci.User{Groups: []uint32{44, 5}, Home: "/root"}},
		"noname":    {user: "eve", err: `image has no user "eve" in /etc/passwd`},
		"nogroup":   {user: "bob:eve", err: `image has no group "eve" in /etc/group`},
		"noextra":   {user: "bob", groups: []string{"eve"}, err: `image has no group "eve" in /etc/group`},
		"range":     {user: "4294967296", err: "user number 4294967296 is out of range"},
		"large":     {user: "large", want: oci.User{UID: 1 << 31, GID: 1<<32 - 2, Home: "/"}},
		"wide":      {user: "wide", err: `user "wide" has the number 4294967296 in the image, or is of a group of that number: it is out of range`},
		"no user":   {user: "nobody", err: `user "nobody" has the number 4294967295 in the image, or is of a group of that number: it is out of range`},
		"negative":  {user: "less", err: `user "less" has the number -1 in the image, or is of a group of that number: it is out of range`},
		"its group": {user: "group", err: `user "group" has the number 4294967296 in the image, or is of a group of that number: it is out of range`},
		"is in":     {user: "in", err: `user "in" has the number 4294967297 in the image, or is of a group of that number: it is out of range`},
		"many":      {user: "many", err: `user "many" is of 70000 groups in the image: a process can be of 65536`},
		"far":       {user: "0", groups: []string{"far"}, err: `image has no group "far" in /etc/group`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := oci.ResolveUser(root, tc.user, tc.groups)
			var f *oci.Failure
			if tc.err != "" && (!errors.As(err, &f) || f.Kind != oci.UserUnknown || f.Message != tc.err) {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			if tc.err == "" && err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("user (-want +got):\n%s", diff)
			}
		})
	}
}

// A hostile image must not make the host's files count, nor hang the reader.
func TestResolveUserStaysInside(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "passwd")
	if err := os.WriteFile(outside, []byte("eve:x:0:0::/:\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cases := map[string]func(etc string) error{
		"absolute": func(etc string) error { return os.Symlink(outside, filepath.Join(etc, "passwd")) },
		"relative": func(etc string) error {
			return os.Symlink("../../../../../../../../"+outside, filepath.Join(etc, "passwd"))
		},
		"fifo":  func(etc string) error { return unix.Mkfifo(filepath.Join(etc, "passwd"), 0o644) },
		"dir":   func(etc string) error { return os.Mkdir(filepath.Join(etc, "passwd"), 0o755) },
		"empty": func(string) error { return nil },
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			etc := filepath.Join(root, "etc")
			if err := errors.Join(os.Mkdir(etc, 0o755), spoil(etc)); err != nil {
				t.Fatal(err)
			}
			if u, err := oci.ResolveUser(root, "eve", nil); err == nil {
				t.Errorf("resolved to %+v", u)
			}
		})
	}
}

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
	for mode, want := range map[oci.SeccompMode]int{oci.SeccompNative: 128 + int(unix.SIGSYS), oci.SeccompCompat: 7, oci.SeccompOff: 7} {
		t.Run(mode.String(), func(t *testing.T) {
			b := newBox(t, "")
			b.req.Command, b.req.Seccomp = []string{"/x/i386"}, mode
			b.req.Mounts = []oci.Mount{{Source: dir, Target: "/x"}}
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
