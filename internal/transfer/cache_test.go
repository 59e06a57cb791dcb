package transfer

import (
	"cmp"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gbatch/oci/atomicfile"
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
	if err := put(t, c, s, files(t, map[string]int{"x": 10, "y": 0, "z": 5}), "s3://lab/data/"); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	k, err := OpenCache(dir, 1<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	var entry string
	fetch := func(user string) error {
		src, err := c.S3Source(s.at, "s3://lab/data/")
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		src.(*bucket).accessKey = user // the server knows one only
		list, err := src.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		key, _, err := k.Get(t.Context(), c, Caller{Scope: "p", User: user, Holder: user}, Fetch{URI: "s3://lab/data/", Source: src, Objects: list})
		entry = cmp.Or(key, entry)
		return err
	}
	var asked atomic.Int32
	var deny atomic.Value // the end of an object's path
	deny.Store("none")
	s.Hook(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Has("list-type") {
			return false
		}
		asked.Add(1)
		if strings.HasSuffix(r.URL.Path, deny.Load().(string)) {
			w.WriteHeader(http.StatusForbidden)
			return true
		}
		return false
	})
	gets := func(user string, want int32) {
		t.Helper()
		asked.Store(0)
		if err := fetch(user); err != nil || asked.Load() != want {
			t.Errorf("%s may read it: %d requests, want %d, %v", user, asked.Load(), want, err)
		}
	}
	gets("ann", 2) // and y is empty
	gets("ann", 1)
	gets("bob", 2)
	gets("bob", 1)
	for _, name := range []string{"x", "z"} {
		deny.Store("/" + name)
		wantKind(t, fetch("eve"), Denied, `s3://lab/data/: object "`+name+`": access was denied`)
	}
	if err := fetch("bob"); err != nil {
		t.Errorf("bob has read z: %v", err)
	}
	deny.Store("/x")
	wantKind(t, fetch("bob"), Denied, `s3://lab/data/: object "x": access was denied`)
	deny.Store("/z") // a right of bob's that was taken away shows in a day
	all := k.readers(entry, time.Now())
	all["bob"] -= int64(readerKnown/time.Second) + 1
	text, err := json.Marshal(all)
	if err == nil {
		err = atomicfile.Write(filepath.Join(dir, entry, readersFile), atomicfile.Sum(text))
	}
	if err != nil {
		t.Fatal(err)
	}
	wantKind(t, fetch("bob"), Denied, `s3://lab/data/: object "z": access was denied`)
	if err := fetch("ann"); err != nil {
		t.Errorf("ann has read z: %v", err)
	}
}
