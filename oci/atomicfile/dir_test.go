package atomicfile

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

// TestDir: a file in the place of a directory, and a directory in that of a file, are moved aside, and kept; a
// link to what is not there is left.
func TestDir(t *testing.T) {
	dir := t.TempDir()
	path, link, deep := filepath.Join(dir, "own"), filepath.Join(dir, "link"), filepath.Join(dir, "a", "b")
	if err := errors.Join(os.WriteFile(path, []byte("text"), 0o600), os.Symlink(dir+"/disk", link)); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	for range 2 {
		if err := errors.Join(Dir(path, 0o700, log), Dir(deep, 0o700, log)); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(path + AsideSuffix); string(text) != "text" {
		t.Errorf("the file is %q, %v", text, err)
	}
	if err := errors.Join(os.RemoveAll(path), os.MkdirAll(path+"/full", 0o700), Write(path, []byte("new"))); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); string(text) != "new" {
		t.Errorf("in the place of a directory there is %q, %v", text, err)
	}
	if _, err := os.Stat(path + AsideSuffix + "/full"); err != nil {
		t.Errorf("the directory was not kept: %v", err)
	}
	if err := Dir(link, 0o700, log); err == nil {
		t.Error("a link to what is not there is taken for a directory")
	}
	if _, err := os.Readlink(link); err != nil {
		t.Error("the link is gone")
	}
}
