package noded

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGoodConfig reads a file that uses every key.
func TestGoodConfig(t *testing.T) {
	c, err := LoadConfig("testdata/good/all.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/good/all.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range configKeys() {
		if !strings.Contains(string(text), key+":") {
			t.Errorf("testdata/good/all.yaml lacks the key %s", key)
		}
	}
	want := StorageRoot{Name: "/project", Path: "/srv/project/{project}", Create: true, Mode: 0o2770}
	if diff := cmp.Diff(want, c.Storage[0]); diff != "" {
		t.Errorf("storage root (-want +got):\n%s", diff)
	}
	if c.ShmSize != 128<<20 || c.Logs.KeepSize != 20<<30 {
		t.Errorf("sizes: shm %s, logs %s", c.ShmSize, c.Logs.KeepSize)
	}
}

// TestBadConfigs: each file's first line is a comment with the whole message.
func TestBadConfigs(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for line := range strings.Lines(string(text)) {
				if rest, ok := strings.CutPrefix(line, "#= "); ok {
					want = append(want, strings.TrimSpace(rest))
				}
			}
			_, err = LoadConfig(file)
			if err == nil {
				t.Fatal("no error")
			}
			_, got, _ := strings.Cut(err.Error(), file+": ")
			if diff := cmp.Diff(want, strings.Split(got, "\n")); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzConfig(f *testing.F) {
	files, _ := filepath.Glob("testdata/*/*.yaml")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := ParseConfig(text)
		if err == nil {
			c.SetDefaults()
			_ = c.Validate()
		}
	})
}
