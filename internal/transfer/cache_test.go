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
	k, err := OpenCache(t.TempDir(), 1<<20)
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
