package image

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/time/rate"

	"gbatch/oci/image/imagetest"
	"gbatch/oci/ref"
)

// fakeRegistry is an in-process registry that counts requests and can be told
// to misbehave.
type fakeRegistry struct {
	*httptest.Server
	host string
	pace *rate.Limiter // of those that are counted; nil: as fast as it goes

	mu    sync.Mutex
	seen  []string // "GET /v2/..."
	fault func(w http.ResponseWriter, r *http.Request) (handled bool)
}

func newRegistry(t testing.TB) *fakeRegistry {
	f := &fakeRegistry{}
	f.Server = httptest.NewServer(f.handler())
	t.Cleanup(f.Close)
	f.host = strings.TrimPrefix(f.URL, "http://")
	return f
}

func (f *fakeRegistry) handler() http.Handler {
	inner := registry.New(registry.Logger(quiet()))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.seen = append(f.seen, r.Method+" "+r.URL.Path)
		fault := f.fault
		f.mu.Unlock()
		if fault == nil || !fault(w, r) {
			inner.ServeHTTP(w, r)
		}
	})
}

func (f *fakeRegistry) setFault(fault func(http.ResponseWriter, *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

// count returns how many requests had that method and path part since the
// last reset.
func (f *fakeRegistry) count(method, part string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, s := range f.seen {
		if strings.HasPrefix(s, method+" ") && strings.Contains(s, part) {
			n++
		}
	}
	return n
}

func (f *fakeRegistry) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = nil
}

func (f *fakeRegistry) ref(t testing.TB, name string) ref.Ref { return parse(t, f.host+"/"+name) }

func (f *fakeRegistry) push(t testing.TB, name string, img v1.Image) (ref.Ref, string) {
	t.Helper()
	r := f.ref(t, name)
	digest, err := imagetest.Push(r, img, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.reset()
	return r, digest
}

func parse(t testing.TB, s string) ref.Ref {
	t.Helper()
	r, _, err := ref.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// needRoot skips what makes devices, trusted attributes or other owners.
func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: unpacking layers needs root")
	}
}

// open opens a store that does not wait between retries.
func open(t testing.TB, c Config) *Store {
	t.Helper()
	needRoot(t)
	if c.Dir == "" {
		c.Dir = filepath.Join(t.TempDir(), "store")
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{}).DialContext
	}
	if c.Sleep == nil {
		c.Sleep = func(context.Context, time.Duration) error { return nil }
	}
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func build(t testing.TB, o imagetest.Options) v1.Image {
	t.Helper()
	img, err := imagetest.Build(o)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// small is an image of two layers; seed makes its bytes differ.
func small(t testing.TB, seed string) v1.Image {
	return build(t, imagetest.Options{
		Layers: [][]imagetest.File{
			{{Name: "etc/"}, {Name: "etc/base", Body: []byte("base of all")}},
			{{Name: "etc/"}, {Name: "etc/seed", Body: []byte(seed)}},
		},
		Config: v1.Config{
			Env: []string{"A=b"}, Entrypoint: []string{"/e"}, Cmd: []string{"c"}, WorkingDir: "/w", User: "u:g",
			StopSignal: "SIGINT", Labels: map[string]string{"l": "m"}, ExposedPorts: map[string]struct{}{"80/tcp": {}},
		},
	})
}

func pull(t testing.TB, s *Store, r ref.Ref, creds *ref.Credentials) *Image {
	t.Helper()
	img, err := s.Pull(t.Context(), PullRequest{Ref: r, Credentials: creds})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// wantError checks kind and part of the message of a failure.
func wantError(t testing.TB, err error, kind Kind, part string) *PullError {
	t.Helper()
	var e *PullError
	if !errors.As(err, &e) {
		t.Fatalf("got error %v; want a PullError of kind %s", err, kind)
	}
	if e.Kind != kind || !strings.Contains(e.Error(), part) {
		t.Fatalf("got %s: %s\nwant %s: ...%s... (cause: %v)", e.Kind, e, kind, part, e.cause)
	}
	return e
}

// names lists a directory.
func names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
