package ctld

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gbatch/internal/ctld/site"
)

// TestPipesForFiles puts a named pipe in the place of each file of the controller's directory in turn: whoever opens one waits for
// ever. The start is refused by a sentence that names it, or goes on without what was in it.
func TestPipesForFiles(t *testing.T) {
	s := newSite(t, nil)
	s.submit(hello(1), "")
	s.stop()
	whole := s.cfg.Dir
	var files []string
	err := filepath.WalkDir(whole, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			name, err := filepath.Rel(whole, path)
			files = append(files, name)
			return err
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		cfg := s.cfg
		cfg.Dir = t.TempDir()
		if err := os.CopyFS(cfg.Dir, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(cfg.Dir, name)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { // ends when Open does
			server, err := Open(func() (site.Config, error) { return cfg, nil }, slog.New(slog.DiscardHandler))
			if err == nil {
				err = server.Close()
			}
			done <- err
		}()
		select {
		case err := <-done:
			t.Logf("%s: %v", name, err)
			if err != nil && !strings.Contains(err.Error(), filepath.Base(name)) {
				t.Errorf("%s: the refusal does not name it: %v", name, err)
			}
		case <-time.After(time.Minute):
			t.Errorf("%s: the start waits for ever", name)
		}
	}
}
