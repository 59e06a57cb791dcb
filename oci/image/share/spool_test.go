package share

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// keep puts a whole layer there.
func keep(t *testing.T, s *Spool, name string, body []byte) {
	t.Helper()
	k := s.Begin(Key("box", name), int64(len(body)), 1<<30)
	if k == nil {
		t.Fatal("there was no room for " + name)
	}
	c := &Copy{File: k.File()}
	_, err := c.Write(body)
	if !c.All(int64(len(body))) {
		t.Fatal(err)
	}
	s.End(k, true)
}

func spooled(t *testing.T, bytes int64) (*Spool, *time.Time) {
	now := time.Unix(0, 0)
	s := New(t.TempDir(), Bounds{Bytes: bytes, Age: time.Minute}, func() time.Time { return now })
	t.Cleanup(s.Close)
	return s, &now
}

// TestSpool: what is kept is bounded and goes when nobody wants it, but not from under a reader.
func TestSpool(t *testing.T) {
	s, now := spooled(t, 25)
	for _, name := range []string{"a", "b", "c"} {
		*now = now.Add(time.Second)
		keep(t, s, name, []byte("0123456789"))
	}
	if _, err := s.Open(t.Context(), t.Context(), "box", "a"); !errors.Is(err, ErrLacks) {
		t.Errorf("the oldest is still there: %v", err)
	}
	if _, err := s.Open(t.Context(), t.Context(), "other", "b"); !errors.Is(err, ErrLacks) {
		t.Errorf("another image's layer: %v", err)
	}
	r, err := s.Open(t.Context(), t.Context(), "box", "b")
	if err != nil {
		t.Fatal(err)
	}
	s.Expire(now.Add(time.Minute))
	s.Shed()
	if len(s.kept) != 1 || s.bytes != 10 {
		t.Errorf("%d layers of %d bytes are kept beside the one that is read", len(s.kept), s.bytes)
	}
	if got, err := io.ReadAll(r); string(got) != "0123456789" || err != nil {
		t.Errorf("read %q: %v", got, err)
	}
	r.Close()
	s.Shed()
	if len(s.kept) != 0 || s.bytes != 0 {
		t.Errorf("%d bytes are left", s.bytes)
	}
	if s.Begin("large", 26, 1<<30) != nil || s.Begin("no room", 10, 39) != nil || s.Begin("negative", -1, 1<<30) != nil {
		t.Error("what has no room is kept")
	}
}

// TestSpoolOfSmallLayers: their number is bounded too, as each has an open file.
func TestSpoolOfSmallLayers(t *testing.T) {
	s, _ := spooled(t, 1<<30)
	for i := range maxLayers + 10 {
		keep(t, s, fmt.Sprint(i), nil)
	}
	if len(s.kept) != maxLayers {
		t.Errorf("%d are kept", len(s.kept))
	}
}

// TestReadWhileItComes: a layer is read as far as it is there, and its failure is told.
func TestReadWhileItComes(t *testing.T) {
	for name, whole := range map[string]bool{"whole": true, "failed": false} {
		t.Run(name, func(t *testing.T) {
			s, _ := spooled(t, 100)
			done := s.Pull("box")
			defer done()
			opened := make(chan *Reader)
			go func() { // ended below
				r, err := s.Open(t.Context(), t.Context(), "box", "a")
				if err != nil {
					t.Error(err)
				}
				opened <- r
			}()
			k := s.Begin(Key("box", "a"), 4, 1<<30)
			r := <-opened
			defer r.Close()
			_, _ = k.File().WriteString("abcd")
			s.Grow(k, 2)
			got := make([]byte, 4)
			if n, err := r.Read(got); string(got[:n]) != "ab" || err != nil {
				t.Errorf("read %q: %v", got[:n], err)
			}
			s.End(k, whole)
			rest, err := io.ReadAll(r)
			if whole && (string(rest) != "cd" || err != nil) || !whole && err == nil {
				t.Errorf("then %q: %v", rest, err)
			}
			done() // else it may come yet
			again, err := s.Open(t.Context(), t.Context(), "box", "a")
			if whole != (err == nil) {
				t.Errorf("then it is opened again: %v", err)
			}
			if err == nil {
				again.Close()
			}
		})
	}
}

// TestVerify: what another node sent is what was wanted, or an error.
func TestVerify(t *testing.T) {
	body := []byte("a layer")
	sum := sha256.Sum256(body)
	want := v1.Descriptor{Size: int64(len(body)), Digest: v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])}}
	for name, tc := range map[string]struct {
		sent string
		want string
	}{
		"whole":   {sent: "a layer"},
		"short":   {sent: "a lay", want: "another node broke off"},
		"other":   {sent: "b layer", want: "what another node sent does not match its digest"},
		"nothing": {want: "another node broke off"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := io.ReadAll(Verify(io.NopCloser(bytes.NewReader([]byte(tc.sent))), want, func(text string) error { return errors.New(text) }))
			if (err == nil) != (tc.want == "") || err != nil && err.Error() != tc.want {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
