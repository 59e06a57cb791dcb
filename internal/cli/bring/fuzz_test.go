package bring

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// FuzzIgnore: whatever the files say that leave something out, they are read or
// refused; and what they say of a directory is said of it each time.
func FuzzIgnore(f *testing.F) {
	f.Add("*.o\n!keep.o\n/build/\n**/x\n", "a/**\n!a/b\n", "a/b/c.o")
	f.Add("[\n\\\n!!\n[!a-]\n", "[\n\\\n!\n**/**/**\n", "a")
	f.Add("#\n \n\x00\n", "../..\n", "../x")
	f.Fuzz(func(t *testing.T, git, docker, name string) {
		if !filepath.IsLocal(name) {
			return
		}
		dir := t.TempDir()
		for file, text := range map[string]string{gitIgnore: git, dockerIgnore: docker, ownIgnore: git} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		g, err := ignoredBelow(dir)
		if err != nil {
			return
		}
		name = filepath.Clean(name)
		for _, isDir := range []bool{false, true} {
			if first, again := g.skip(name, isDir), g.skip(name, isDir); first != again {
				t.Errorf("%q is left out: %v and then %v", name, first, again)
			}
		}
	})
}

// TestIgnoreIsAPipe: a directory may be somebody else's, and what it says to leave
// out is a file or refused.
func TestIgnoreIsAPipe(t *testing.T) {
	for _, name := range []string{gitIgnore, dockerIgnore, ownIgnore, "sub/" + gitIgnore} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, dir, map[string]string{"file": "", "sub/file": ""})
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
		if p, err := Pack(t.Context(), dir); err == nil {
			err = p.done()
			if err == nil {
				t.Errorf("%s as a pipe was taken", name)
			}
		}
	}
}
