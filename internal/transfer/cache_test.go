package transfer

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestCacheByServer: whoever says where S3 is can have a server that claims to have the
// same version of the same object. Its bytes are not given to those who ask another one,
// and it is not given theirs.
func TestCacheByServer(t *testing.T) {
	k, err := OpenCache(t.TempDir(), 1<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := testClient()
	for _, want := range []string{"theirs", "honest"} {
		at := S3{Endpoint: web(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"one"`)
			http.ServeContent(w, r, "", time.Unix(1e9, 0), strings.NewReader(want))
		})}
		src, err := c.S3Source(at, "s3://lab/x")
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		list, err := src.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time from the cache
			key, _, err := k.Get(t.Context(), c, Caller{Scope: "p", User: "ann", Holder: want}, Fetch{URI: "s3://lab/x", Source: src, Objects: list})
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Join(k.Content(key), SingleName))
			if err != nil || string(got) != want {
				t.Errorf("from the server that has %q came %q, %v", want, got, err)
			}
		}
	}
}

// TestCacheOfOthers: who may list what is below a prefix and not read it gets nothing
// of it from the cache.
func TestCacheOfOthers(t *testing.T) {
	s, c := newServer(t), testClient()
	if err := put(t, c, s, files(t, map[string]int{"x": 10, "y": 0}), "s3://lab/data/"); err != nil {
		t.Fatal(err)
	}
	k, err := OpenCache(t.TempDir(), 1<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	fetch := func(user string) error {
		src, err := c.S3Source(s.at, "s3://lab/data/")
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		list, err := src.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = k.Get(t.Context(), c, Caller{Scope: "p", User: user, Holder: user}, Fetch{URI: "s3://lab/data/", Source: src, Objects: list})
		return err
	}
	for _, user := range []string{"ann", "bob"} {
		if err := fetch(user); err != nil {
			t.Errorf("%s may read it: %v", user, err)
		}
	}
	s.Hook(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/x") {
			w.WriteHeader(http.StatusForbidden)
			return true
		}
		return false
	})
	wantKind(t, fetch("eve"), Denied, "s3://lab/data/: access was denied")
}
