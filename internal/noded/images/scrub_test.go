package images

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gbatch/internal/job"
	"gbatch/internal/noded/config"
	"gbatch/oci/image"
	"gbatch/oci/image/imagetest"
	"gbatch/oci/ref"
)

// local is a store that has an image, and a rank that runs on it.
func local(t *testing.T) (c *config.Config, u *Holds, img *image.Image, runs job.RankID) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: unpacking layers needs root")
	}
	made, err := imagetest.Build(imagetest.Options{Layers: [][]imagetest.File{{{Name: "file", Body: []byte("what is in it")}}}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	digest, err := imagetest.WriteLayout(filepath.Join(dir, "layout"), made, "1")
	if err != nil {
		t.Fatal(err)
	}
	c = &config.Config{Images: config.Images{Dir: filepath.Join(dir, "store"), LocalRoots: []string{dir}}}
	if u, err = Open(c, Told{Pulled: func(time.Duration, error) {}}); err != nil {
		t.Fatal(err)
	}
	name, _, err := ref.Parse("oci:" + filepath.Join(dir, "layout") + "@" + digest)
	if err != nil {
		t.Fatal(err)
	}
	runs = job.RankID{Job: 7, Attempt: 1}
	if img, err = u.Pull(t.Context(), runs, image.PullRequest{Ref: name}); err != nil {
		t.Fatal(err)
	}
	return c, u, img, runs
}

// TestScrub: a layer that the disk changed is in the log with the ranks that run on it.
func TestScrub(t *testing.T) {
	_, u, img, runs := local(t)
	defer u.Close()
	var log bytes.Buffer
	scrub := func() int {
		t.Helper()
		n, err := u.Scrub(slog.New(slog.NewTextHandler(&log, nil)), func(int64) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := scrub(); n != 0 || log.Len() > 0 {
		t.Errorf("of a whole store: %d, %s", n, &log)
	}
	if err := os.WriteFile(img.Layers[0]+"/file", []byte("what is iN it"), 0o644); err != nil {
		t.Fatal(err)
	}
	if n := scrub(); n != 1 || strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), "jobs=["+runs.String()+"]") {
		t.Errorf("%d were damaged: %s", n, &log)
	}
	if n := scrub(); n != 0 {
		t.Errorf("it is found again, %d times", n)
	}
}

// TestDamagedImageRecord: what a rank runs on stays though the record of its image was damaged while no daemon ran.
func TestDamagedImageRecord(t *testing.T) {
	c, u, img, runs := local(t)
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	record := filepath.Join(c.Images.Dir, "images", strings.TrimPrefix(img.Digest, "sha256:")+".json")
	b, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	b[bytes.Index(b, []byte(`"refs"`))+1] ^= 1 // it is JSON as before
	if err := os.WriteFile(record, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if u, err = Open(c, Told{Pulled: func(time.Duration, error) {}}); err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	if err := u.Hold(runs, img.Digest); err == nil {
		t.Error("the damaged record is taken as it is")
	}
	collect := func() error {
		t.Helper()
		if _, err := u.Collect(time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		_, err := os.Stat(img.Layers[0] + "/file")
		return err
	}
	if err := collect(); err != nil {
		t.Errorf("while the rank runs: %v", err)
	}
	u.Drop(runs)
	if err := collect(); err == nil {
		t.Error("nobody runs on it, and it is kept")
	}
}
