package identity

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestInstance: a node stays the same whatever becomes of one of the two files that say which it is; where neither
// does, that is said.
func TestInstance(t *testing.T) {
	flip := func(path string) error {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		b[3] ^= 1
		return os.WriteFile(path, b, 0o600)
	}
	empty := func(path string) error { return os.Truncate(path, 0) }
	for name, damage := range map[string]func(string) error{"gone": os.Remove, "empty": empty, "a bit": flip} {
		for _, file := range []string{"instance", "instance.copy"} {
			dir := t.TempDir()
			id, err := LoadInstance(dir)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // and it is there twice again
				if err := damage(filepath.Join(dir, file)); err != nil {
					t.Fatal(err)
				}
				if got, err := LoadInstance(dir); got != id || err != nil {
					t.Errorf("%s, %s: it is %q, %v; want %q", file, name, got, err, id)
				}
			}
		}
	}
	dir := t.TempDir()
	for _, file := range []string{"instance", "instance.copy"} {
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := LoadInstance(dir); err == nil || !strings.Contains(err.Error(), "remove both") {
		t.Error(err)
	}
}
