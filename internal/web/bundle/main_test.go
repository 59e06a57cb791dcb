package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReproducible bundles the page in two folders, and expects the same bytes under the
// same names. In them is no style or script beside their files, no address of another
// host that a browser would ask, and a licence for each package.
func TestReproducible(t *testing.T) {
	var packages struct{ Dependencies map[string]string }
	raw, err := os.ReadFile("../package.json")
	if err == nil {
		err = json.Unmarshal(raw, &packages)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("../node_modules/preact"); err != nil {
		t.Skip("SKIPPED: the web page is not bundled twice: what scripts/build-web fetches is missing")
	}
	var built []map[string]string
	for _, dir := range []string{"a", "another/and a deeper one"} {
		root := filepath.Join(t.TempDir(), dir)
		place := filepath.Join(root, "internal", "web")
		copied := map[string]string{"../src": "src", "../../../docs": "../../docs"}
		for name := range packages.Dependencies {
			copied["../node_modules/"+name] = "node_modules/" + name
		}
		for from, to := range copied {
			if err := os.CopyFS(filepath.Join(place, to), os.DirFS(from)); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"package.json", "tsconfig.json"} {
			text, err := os.ReadFile("../" + name)
			if err == nil {
				err = os.WriteFile(filepath.Join(place, name), text, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := bundle(place); err != nil {
			t.Fatal(err)
		}
		built = append(built, filesOf(t, filepath.Join(place, "dist")))
	}
	if diff := cmp.Diff(built[0], built[1]); diff != "" {
		t.Errorf("the same sources give other bytes in another folder (-one +other):\n%.2000s", diff)
	}
	for name := range packages.Dependencies {
		if _, text, ok := strings.Cut("\n"+built[0]["licences.txt"], "\n"+name+"\n\n"); !ok || !strings.Contains(text[:min(len(text), 2000)], "WITHOUT WARRANTY") {
			t.Errorf("licences.txt has no licence of %s", name)
		}
	}
	page := built[0]["index.html"]
	if inline := regexp.MustCompile(`<style|style=|\son\w+=|<script[^>]*>[^<]|javascript:|https?://`).FindString(page); inline != "" {
		t.Errorf("the document has %q:\n%s", inline, page)
	}
}

func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, path))
		out[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
