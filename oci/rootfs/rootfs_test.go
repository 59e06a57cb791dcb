package rootfs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestFile: whatever an image has where a file is put, the file is there
// afterwards and nothing outside was touched, or the image is at fault.
func TestFile(t *testing.T) {
	tests := map[string]struct {
		image func(top, outside string) error
		name  string
		want  error
	}{
		"nothing":    {func(string, string) error { return nil }, "/a/b/hosts", nil},
		"at the top": {func(string, string) error { return nil }, "/hosts", nil},
		"a file":     {func(top, _ string) error { return os.WriteFile(top+"/hosts", []byte("longer than ours"), 0o600) }, "/hosts", nil},
		"a link out": {func(top, outside string) error { return os.Symlink(outside+"/theirs", top+"/hosts") }, "/hosts", nil},
		"a dir out": {func(top, outside string) error {
			return errors.Join(os.Mkdir(top+"/outside", 0o755), os.Symlink("../outside", top+"/etc"))
		}, "/etc/hosts", nil},
		"a dir nowhere": {func(top, outside string) error { return os.Symlink("../outside", top+"/etc") }, "/etc/hosts", unix.ENOTDIR},
		"a hard link":   {func(top, outside string) error { return os.Link(outside+"/theirs", top+"/hosts") }, "/hosts", nil},
		"a pipe":        {func(top, _ string) error { return unix.Mkfifo(top+"/hosts", 0o600) }, "/hosts", nil},
		"a directory":   {func(top, _ string) error { return os.Mkdir(top+"/hosts", 0o700) }, "/hosts", unix.EISDIR},
		"a file above":  {func(top, _ string) error { return os.WriteFile(top+"/etc", nil, 0o600) }, "/etc/hosts", unix.ENOTDIR},
		"a loop above":  {func(top, _ string) error { return os.Symlink("etc", top+"/etc") }, "/etc/hosts", unix.ELOOP},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			at, outside := filepath.Join(dir, "image"), filepath.Join(dir, "outside")
			for _, d := range []string{at, outside} {
				if err := os.Mkdir(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(os.WriteFile(outside+"/theirs", []byte("theirs"), 0o600), tc.image(at, outside)); err != nil {
				t.Fatal(err)
			}
			top, err := os.Open(at)
			if err != nil {
				t.Fatal(err)
			}
			defer top.Close()
			r := Root{Top: top, UID: os.Getuid(), GID: os.Getgid()}
			if err := r.file(File{Path: tc.name, Text: "ours"}); !errors.Is(err, tc.want) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			if tc.want == nil {
				place := filepath.Join(at, tc.name)
				if name == "a dir out" {
					place = filepath.Join(at, "outside/hosts") // as the image sees it
				}
				got, err := os.ReadFile(place)
				if diff := cmp.Diff("ours", string(got)); diff != "" || err != nil {
					t.Errorf("(-want +got):\n%s%v", diff, err)
				}
			}
			got, _ := os.ReadFile(outside + "/theirs")
			entries, _ := os.ReadDir(outside)
			if string(got) != "theirs" || len(entries) != 1 {
				t.Errorf("outside of the image: %q, %d entries", got, len(entries))
			}
		})
	}
}

// TestLink: a file that lies elsewhere in the container is a link to there, whatever
// the image has in its place.
func TestLink(t *testing.T) {
	for name, image := range map[string]func(at string) error{
		"nothing": func(string) error { return nil },
		"a file": func(at string) error {
			return errors.Join(os.Mkdir(at+"/a", 0o755), os.WriteFile(at+"/a/key", []byte("theirs"), 0o600))
		},
		"a link": func(at string) error {
			return errors.Join(os.Mkdir(at+"/a", 0o755), os.Symlink("/nowhere", at+"/a/key"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			at := t.TempDir()
			if err := image(at); err != nil {
				t.Fatal(err)
			}
			top, err := os.Open(at)
			if err != nil {
				t.Fatal(err)
			}
			defer top.Close()
			r := Root{Top: top, UID: os.Getuid(), GID: os.Getgid()}
			if err := r.file(File{Path: "/a/key", Link: "/var/secrets/key"}); err != nil {
				t.Fatal(err)
			}
			if got, err := os.Readlink(at + "/a/key"); err != nil || got != "/var/secrets/key" {
				t.Errorf("leads to %q, %v", got, err)
			}
		})
	}
}
