package imagetest

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func TestBuildIsReproducible(t *testing.T) {
	for _, zstd := range []bool{false, true} {
		o := Options{Busybox: true, Zstd: zstd, Layers: [][]File{{{Name: "x", Body: []byte("y")}}}, Config: v1.Config{Labels: map[string]string{"a": "b", "c": "d"}}}
		var digests [2]string
		for i := range digests {
			img, err := Build(o)
			if errors.Is(err, errNoBusybox) {
				t.Skipf("SKIPPED: %v", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			if digests[i], err = digestOf(img); err != nil {
				t.Fatal(err)
			}
		}
		if digests[0] != digests[1] {
			t.Errorf("zstd %v: two digests %v", zstd, digests)
		}
	}
}

func TestWriteLayoutReplacesTheTag(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "layout")
	var last string
	for _, body := range []string{"1", "2"} {
		img, err := Build(Options{Layers: [][]File{{{Name: "x", Body: []byte(body)}}}})
		if err != nil {
			t.Fatal(err)
		}
		if last, err = WriteLayout(dir, img, "v1"); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	index, err := v1.ParseIndexManifest(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if len(index.Manifests) != 1 || index.Manifests[0].Digest.String() != last {
		t.Errorf("index holds %+v; want %s", index.Manifests, last)
	}
}
