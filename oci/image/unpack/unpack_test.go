package unpack

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"
)

func tarOf(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range headers {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, h.Size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func targetFor(dir string, raw []byte) Target {
	sum := sha256.Sum256(raw)
	return Target{
		Dir: dir, DiffID: v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])},
		MaxBytes: 1 << 10, MaxID: 999, Room: func(int64) error { return nil },
	}
}

// What a layer is said to be is what the store keeps of it.
func TestResult(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: giving files an owner takes root")
	}
	raw := tarOf(t,
		tar.Header{Name: "a/b/f", Size: 10, Mode: 0o644},
		tar.Header{Name: "c/", Typeflag: tar.TypeDir, Mode: 0o755},
		tar.Header{Name: "c/.wh..wh..opq"},
		tar.Header{Name: "c/g", Size: 5, Mode: 0o600, Uid: 999, Gid: 7},
		tar.Header{Name: ".wh.gone"},
		tar.Header{Name: "null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3},
	)
	dir := t.TempDir()
	got, err := Layer(t.Context(), bytes.NewReader(raw), targetFor(dir, raw))
	if err != nil {
		t.Fatal(err)
	}
	want := Result{Size: 15, Entries: 6, Implicit: []string{"/a", "/a/b"}, Opaque: []string{"c"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if !isWhiteout(filepath.Join(dir, "gone")) {
		t.Error("a whiteout is not in overlay's form")
	}
	if _, err := os.Lstat(filepath.Join(dir, "null")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a device was made: %v", err)
	}
	var st unix.Stat_t
	if err := unix.Lstat(filepath.Join(dir, "c/g"), &st); err != nil || st.Uid != 999 || st.Gid != 7 {
		t.Errorf("user %d and group %d: %v", st.Uid, st.Gid, err)
	}
}

func TestErrors(t *testing.T) {
	noRoom := errors.New("no room")
	for name, c := range map[string]struct {
		header tar.Header
		change func(*Target)
		kind   Kind
		cause  error
	}{
		"another digest": {tar.Header{Name: "f"}, func(to *Target) { to.DiffID.Hex = "00" }, Corrupt, nil},
		"too big":        {tar.Header{Name: "f", Size: 1<<10 + 1}, func(*Target) {}, Unsupported, nil},
		"owner":          {tar.Header{Name: "f", Uid: 1000}, func(*Target) {}, Unsupported, nil},
		"room":           {tar.Header{Name: "f"}, func(to *Target) { to.Room = func(int64) error { return noRoom } }, Corrupt, noRoom},
		"disk":           {tar.Header{Name: "f"}, func(to *Target) { to.Room = func(int64) error { return unix.ENOSPC } }, Local, unix.ENOSPC},
	} {
		t.Run(name, func(t *testing.T) {
			raw := tarOf(t, c.header)
			to := targetFor(t.TempDir(), raw)
			c.change(&to)
			_, err := Layer(t.Context(), bytes.NewReader(raw), to)
			e, ok := errors.AsType[*Error](err)
			if !ok || e.Kind != c.kind || c.cause != nil && !errors.Is(err, c.cause) {
				t.Errorf("%#v, want kind %d with cause %v", err, c.kind, c.cause)
			}
		})
	}
}
