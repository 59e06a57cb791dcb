package image

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// document answers a path part with a body.
func document(part, body string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, part) {
			return false
		}
		h, _, _ := v1.SHA256(strings.NewReader(body))
		w.Header().Set("Docker-Content-Digest", h.String())
		w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		fmt.Fprint(w, body)
		return true
	}
}

// drip sends a byte now and then, for ever.
func drip(w http.ResponseWriter, r *http.Request) {
	for {
		select {
		case <-r.Context().Done():
			return
		case <-time.After(20 * time.Millisecond):
			fmt.Fprint(w, " ")
			w.(http.Flusher).Flush()
		}
	}
}

const noBlob = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

func manifestWith(config, layers string) string {
	return fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"config":%s,"layers":[%s]}`, types.OCIManifestSchema1, config, layers)
}

var (
	someConfig = fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":2}`, types.OCIConfigJSON, noBlob)
	someLayer  = fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":2}`, types.OCILayer, noBlob)
)

// What a hostile registry may send: each ends soon, with a sentence that does
// not blame the node.
var hostileRegistries = map[string]struct {
	fault func(http.ResponseWriter, *http.Request) bool
	want  string
}{
	"manifest without end": {func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/manifests/") {
			for w.Write(make([]byte, 1<<20)); r.Context().Err() == nil; w.Write(make([]byte, 1<<20)) {
			}
			return true
		}
		return false
	}, "where a manifest or a token was due"},
	"manifest byte by byte": {func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/manifests/") {
			drip(w, r)
			return true
		}
		return false
	}, "no answer in time"},
	"first answer byte by byte": {func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/v2/" {
			w.WriteHeader(http.StatusUnauthorized)
			drip(w, r)
			return true
		}
		return false
	}, ""},
	"token without end": {func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/token" {
			for fmt.Fprint(w, `{"token":"`); r.Context().Err() == nil; w.Write(bytes.Repeat([]byte("x"), 1<<20)) {
			}
			return true
		}
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token"`, r.Host))
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}, "body exceeds"},
	"redirects in a circle": {func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, r.URL.Path+"?", http.StatusFound)
		return true
	}, ""},
	"redirect to a file": {func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Location", "file:///etc/shadow")
		w.WriteHeader(http.StatusFound)
		return strings.Contains(r.URL.Path, "/manifests/")
	}, ""},
	"long headers": {func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("X-Long", strings.Repeat("x", 12<<20))
		return true
	}, ""},
	"no digest":           {document("/manifests/", ""), ""},
	"no JSON":             {document("/manifests/", "<html>sign in</html>"), "manifest cannot be read"},
	"other manifest":      {document("/manifests/sha256", "{}"), ""},
	"schema 1":            {document("/manifests/", `{"schemaVersion":1}`), "schema 1"},
	"no config":           {document("/manifests/", `{"schemaVersion":2}`), "not a container image"},
	"sha512":              {document("/manifests/", manifestWith(strings.Replace(someConfig, "sha256:", "sha512:"+strings.Repeat("0", 64), 1), someLayer)), "not sha256"},
	"absent config":       {document("/manifests/", manifestWith(someConfig, someLayer)), ""},
	"config not as named": {either(document("/manifests/", manifestWith(someConfig, someLayer)), document("/blobs/", "{}")), ""},
	"index in an index":   {document("/manifests/", fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"manifests":[{"mediaType":%q,"digest":%q,"size":2}]}`, types.OCIImageIndex, types.OCIImageIndex, noBlob)), "no platform at all"},
	"deep JSON":           {document("/manifests/", strings.Repeat("[", 1<<20)), "manifest cannot be read"},
	"index of itself":     {document("/manifests/", fmt.Sprintf(`{"schemaVersion":2,"manifests":[{"digest":%q,"size":2}]}`, noBlob)), ""},
	"zipped bomb": {func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/manifests/") {
			return false
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		z.Write(make([]byte, 8<<20))
		z.Close()
		return true
	}, ""},
	"layer longer than said": {func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/") || r.Header.Get("X-Config") != "" {
			return false
		}
		w.Write(gzipOf(nil))
		for r.Context().Err() == nil {
			w.Write(make([]byte, 1<<20))
		}
		return true
	}, ""},
	"teapot":   {func(w http.ResponseWriter, r *http.Request) bool { w.WriteHeader(http.StatusTeapot); return true }, "418"},
	"hangs up": {func(w http.ResponseWriter, r *http.Request) bool { panic(http.ErrAbortHandler) }, ""},
	"says 200": {func(w http.ResponseWriter, r *http.Request) bool { return true }, ""},
	"wrong key": {func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("WWW-Authenticate", "Bearer realm=\"\x01\",,==")
		w.WriteHeader(401)
		return true
	}, ""},
}

func either(faults ...func(http.ResponseWriter, *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		for _, f := range faults {
			if f(w, r) {
				return true
			}
		}
		return false
	}
}

func TestHostileRegistry(t *testing.T) {
	t.Parallel() // it waits
	f := newRegistry(t)
	f.Config.ErrorLog = quiet()
	r, _ := f.push(t, "a/b:1", small(t, "x"))
	for name, tc := range hostileRegistries {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			s := open(t, Config{Retries: -1, StallTimeout: 5 * time.Second, PullTimeout: time.Minute})
			f.setFault(tc.fault)
			_, err := s.Pull(t.Context(), PullRequest{Ref: r, Credentials: login("alice")})
			if err == nil && tc.want == "" {
				return // it found its way in time
			}
			e, ok := err.(*PullError)
			if !ok {
				t.Fatalf("got %v", err)
			}
			if e.Fault() == FaultNode || e.Kind == Timeout || !strings.Contains(e.Detail, tc.want) || len(e.Detail) > 2000 {
				t.Errorf("%s (%s's fault): %s; want %q (%v)", e.Kind, e.Fault(), e.Detail, tc.want, e.cause)
			}
		})
	}
	f.setFault(nil)
	pull(t, open(t, Config{}), r, login("alice"))
}
