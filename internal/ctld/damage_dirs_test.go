package ctld

import (
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"gbatch/internal/ctld/site"
)

// TestFilesForDirectories puts a file into the place of each directory that the controller has beside its store, and of one
// user's below them: it starts, and what they hold for others is there.
func TestFilesForDirectories(t *testing.T) {
	s := newSite(t, nil)
	s.stop()
	user := filepath.Join("trees", hex.EncodeToString([]byte("ann")))
	for _, name := range []string{site.CurvesDir, "logs", user, "trees", "scrub.tmp"} {
		path := filepath.Join(s.cfg.Dir, name)
		if err := errors.Join(os.RemoveAll(path), os.WriteFile(path, []byte("x"), 0o600)); err != nil {
			t.Fatal(err)
		}
		s.start()
		s.submit(hello(1), "")
		s.stop()
		if st, err := os.Stat(path); name != "scrub.tmp" && (err != nil || !st.IsDir()) {
			t.Errorf("%s is no directory again (%v)", name, err)
		}
	}
}
