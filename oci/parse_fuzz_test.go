package oci

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// FuzzReply reads anything as a shim's answer.
func FuzzReply(f *testing.F) {
	f.Add([]byte(`{"v":1,"seq":3,"phase":"running","pid":7}`))
	f.Add([]byte(`{"seq":-1}`))
	f.Fuzz(func(t *testing.T, line []byte) { _, _ = parseReply(line) })
}

// FuzzUser looks users up in what an image has for /etc/passwd and /etc/group:
// they are numbers of a container, or the job's own fault.
func FuzzUser(f *testing.F) {
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
		u, err := resolveUser(root, spec, []string{spec})
		if fault := (*Failure)(nil); err != nil && (!errors.As(err, &fault) || fault.Kind != UserUnknown) {
			t.Errorf("%v is not told as the job's fault", err)
		}
		if err == nil && (u.UID == 1<<32-1 || u.GID == 1<<32-1 || slices.Contains(u.Groups, 1<<32-1)) {
			t.Errorf("%+v has a number that means nobody", u)
		}
	})
}
