package changes

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"gbatch/oci/userns"
)

func must(t *testing.T, steps ...error) {
	t.Helper()
	if err := errors.Join(steps...); err != nil {
		t.Fatal(err)
	}
}

// TestWrite: all kinds of files as overlayfs leaves them, and nothing outside.
func TestWrite(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: whiteouts and owners need root: run as root")
	}
	outside := filepath.Join(t.TempDir(), "secret")
	up := t.TempDir()
	at := func(name string) string { return filepath.Join(up, name) }
	must(t,
		os.WriteFile(outside, []byte("secret"), 0o600),
		os.MkdirAll(at("etc/sub"), 0o755), os.WriteFile(at("etc/a"), []byte("body"), 0o640), os.Chown(at("etc/a"), 5001, 5002), os.Link(at("etc/a"), at("etc/b")),
		os.Symlink(outside, at("etc/link")), os.Symlink(filepath.Dir(outside), at("dir")),
		unix.Mkfifo(at("fifo"), 0o600), unix.Mknod(at("gone"), unix.S_IFCHR, 0), unix.Mknod(at("null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))),
		os.Mkdir(at("opaque"), 0o700), unix.Setxattr(at("opaque"), "trusted.overlay.opaque", []byte("y"), 0), unix.Setxattr(at("opaque"), "user.mine", []byte{0, 1}, 0),
		os.MkdirAll(at("mnt/point"), 0o755), os.WriteFile(at("mnt/point/x"), nil, 0o600),
	)
	c := Container{Upper: up, Skip: []string{"/mnt/point"}, IDs: userns.Map{
		UIDs: []specs.LinuxIDMapping{{ContainerID: 0, HostID: 1000, Size: 1}, {ContainerID: 1, HostID: 5001, Size: 10}},
		GIDs: []specs.LinuxIDMapping{{ContainerID: 0, HostID: 1000, Size: 1}, {ContainerID: 1, HostID: 5001, Size: 10}},
	}}
	var out bytes.Buffer
	if err := c.Write(t.Context(), &out, 100); err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := tar.NewReader(&out); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(r)
		line := fmt.Sprintf("%c %s %o %d:%d %s%s", h.Typeflag, h.Name, h.Mode, h.Uid, h.Gid, strings.ReplaceAll(h.Linkname, filepath.Dir(outside), "OUT"), body)
		for k, v := range h.PAXRecords {
			if strings.HasPrefix(k, "SCHILY") {
				line += fmt.Sprintf(" %s=%q", k, v)
			}
		}
		got = append(got, line)
	}
	want := []string{
		"2 dir 777 0:0 OUT",
		"5 etc/ 755 0:0 ",
		"0 etc/a 640 1:2 body",
		"1 etc/b 640 1:2 etc/a",
		"2 etc/link 777 0:0 OUT/secret",
		"5 etc/sub/ 755 0:0 ",
		"6 fifo 600 0:0 ",
		"0 .wh.gone 0 0:0 ",
		"5 mnt/ 755 0:0 ",
		"5 opaque/ 700 0:0  SCHILY.xattr.user.mine=\"\\x00\\x01\"",
		"0 opaque/.wh..wh..opq 0 0:0 ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("layer (-want +got):\n%s", diff)
	}
	must(t, unix.Setxattr(at("etc"), "trusted.overlay.redirect", []byte("/x"), 0))
	if err := c.Write(t.Context(), io.Discard, 100); !errors.Is(err, errMoved) || !strings.HasPrefix(err.Error(), "/etc: ") {
		t.Errorf("a moved directory: %v", err)
	}
}

// TestWriteRefuses: what has no place in an image, in a sentence without a path of
// the host.
func TestWriteRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		make func(dir string) error
		want error
	}{
		"too large": {func(d string) error { return os.WriteFile(d+"/x", make([]byte, 101), 0o600) }, ErrTooLarge},
		"sparse":    {func(d string) error { return errors.Join(os.WriteFile(d+"/x", nil, 0o600), os.Truncate(d+"/x", 1<<40)) }, ErrTooLarge},
		"whiteout":  {func(d string) error { return os.WriteFile(d+"/.wh.x", nil, 0o600) }, errNamed},
		"opaque":    {func(d string) error { return os.Mkdir(d+"/.wh..wh..opq", 0o700) }, errNamed},
		"deep":      {func(d string) error { return nest(d, maxDepth+2) }, errNested},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, tc.make(dir))
			err := Container{Upper: dir}.Write(t.Context(), io.Discard, 100)
			if !errors.Is(err, tc.want) || strings.Contains(err.Error(), dir) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
		})
	}
}

// nest makes directories within directories, deeper than a path can be long.
func nest(dir string, n int) error {
	at, err := os.OpenRoot(dir)
	for range n {
		if err != nil {
			return err
		}
		if err = at.Mkdir("a", 0o700); err != nil {
			return err
		}
		var next *os.Root
		next, err = at.OpenRoot("a")
		at.Close()
		at = next
	}
	return errors.Join(err, at.Close())
}
