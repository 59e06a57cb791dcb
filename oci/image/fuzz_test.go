package image

import (
	"path/filepath"
	"strings"
	"testing"
)

// FuzzUnpack feeds any bytes: nothing outside of the layer changes, and what
// is refused is refused as the layer's fault.
func FuzzUnpack(f *testing.F) {
	for _, l := range hostileLayers {
		raw := l.raw
		if raw == nil {
			raw = tarOf(l.entries)
		}
		if len(raw) < 1<<14 {
			f.Add(raw)
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		needRoot(t)
		outside := t.TempDir()
		root := filepath.Join(outside, "store", "fs")
		write(t, filepath.Dir(root), "beside", "untouched")
		write(t, outside, "sentinel", "untouched")
		write(t, root, "own", "")
		before := snapshot(t, outside, root)
		err := unpackAll(t, root, raw)
		if diff := before.changes(snapshot(t, outside, root)); diff != "" {
			t.Errorf("changed outside of the layer: %s", diff)
		}
		if err != nil {
			if e := wantKind(t, err); strings.Contains(e.Detail, root) {
				t.Errorf("sentence %q", e.Detail)
			}
		}
		checkNoDevices(t, root)
	})
}

func wantKind(t *testing.T, err error) *PullError {
	t.Helper()
	e := classifyLocal(err)
	if e.Kind != Corrupt && e.Kind != Unsupported {
		t.Fatalf("kind %s: %v", e.Kind, err)
	}
	return e
}
