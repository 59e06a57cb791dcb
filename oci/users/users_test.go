package users_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"gbatch/oci/failure"
	"gbatch/oci/users"
)

func TestResolve(t *testing.T) {
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
	var many strings.Builder
	for i := range 70_000 {
		fmt.Fprintf(&many, "g:x:1%d:many\n", i)
	}
	write("etc/passwd", "root:x:0:0::/root:/bin/sh\nbob:x:1000:1001::/home/bob:/bin/sh\n"+
		"wide:x:4294967296:5::/:\nnobody:x:4294967295:5::/:\nless:x:-1:5::/:\nlarge:x:2147483648:4294967294::/:\ngroup:x:5:4294967296::/:\nin:x:5:5::/:\nmany:x:6:6::/:\n")
	write("etc/group", "root:x:0:\nusers:x:1001:\nvideo:x:44:bob\nfar:x:4294967297:in\n"+many.String())
	cases := map[string]struct {
		user   string
		groups []string
		want   users.User
		err    string
	}{
		"root":      {user: "0", want: users.User{Home: "/root"}},
		"name":      {user: "bob", want: users.User{UID: 1000, GID: 1001, Groups: []uint32{44}, Home: "/home/bob"}},
		"namegroup": {user: "bob:video", want: users.User{UID: 1000, GID: 44, Home: "/home/bob"}},
		"number":    {user: "1000", want: users.User{UID: 1000, GID: 1001, Groups: []uint32{44}, Home: "/home/bob"}},
		"unknown":   {user: "77:88", want: users.User{UID: 77, GID: 88, Home: "/"}},
		"groups":    {user: "0", groups: []string{"video", "5", "video"}, want: users.User{Groups: []uint32{44, 5}, Home: "/root"}},
		"noname":    {user: "eve", err: `image has no user "eve" in /etc/passwd`},
		"nogroup":   {user: "bob:eve", err: `image has no group "eve" in /etc/group`},
		"noextra":   {user: "bob", groups: []string{"eve"}, err: `image has no group "eve" in /etc/group`},
		"range":     {user: "4294967296", err: "user number 4294967296 is out of range"},
		"large":     {user: "large", want: users.User{UID: 1 << 31, GID: 1<<32 - 2, Home: "/"}},
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
			got, err := users.Resolve(root, tc.user, tc.groups)
			var f *failure.Failure
			if tc.err != "" && (!errors.As(err, &f) || f.Kind != failure.UserUnknown || f.Message != tc.err) {
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
func TestResolveStaysInside(t *testing.T) {
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
			if u, err := users.Resolve(root, "eve", nil); err == nil {
				t.Errorf("resolved to %+v", u)
			}
		})
	}
}

// FuzzResolve looks users up in what an image has for /etc/passwd and /etc/group:
// they are numbers of a container, or the job's own fault.
func FuzzResolve(f *testing.F) {
	f.Add("bob:x:1000:1000::/home/bob:/bin/sh\n", "bob:x:1000:\nwheel:x:10:bob\n", "bob:wheel")
	f.Add("root:x:-1:0::/:\n", "", "root")
	f.Add("a:x:4294967296:4294967295::/:\n", "g:x:4294967296:a", "a")
	f.Add(":::::\n\n:", "::", "4294967295:0")
	f.Add("+::::::\n", "", "+1")
	root := f.TempDir()
	if err := os.Mkdir(filepath.Join(root, "etc"), 0o755); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, passwd, group, spec string) {
		for name, text := range map[string]string{"passwd": passwd, "group": group} {
			if err := os.WriteFile(filepath.Join(root, "etc", name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		u, err := users.Resolve(root, spec, []string{spec})
		if fault := (*failure.Failure)(nil); err != nil && (!errors.As(err, &fault) || fault.Kind != failure.UserUnknown) {
			t.Errorf("%v is not told as the job's fault", err)
		}
		if err == nil && (u.UID == 1<<32-1 || u.GID == 1<<32-1 || slices.Contains(u.Groups, 1<<32-1)) {
			t.Errorf("%+v has a number that means nobody", u)
		}
	})
}
