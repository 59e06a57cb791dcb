// Package web is the web page, as files that the controller serves: one document,
// one script with parts that only some pages need, one style sheet. They use the public API and nothing else.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"

	"gbatch/internal/api"
)

// Base is where the page is; below it the page names its own places.
const Base = "/web/"

// policy lets the page load what is ours and nothing else. Text that is not ours
// (names, logs) cannot become a program even where the page has a mistake.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// file is a file of the page, as it is and compressed.
type file struct {
	plain, small []byte
	kind, tag    string
	forever      bool // its name changes with what is in it
}

// document is shown for each of the page's places.
const document = "index.html"

var files = sync.OnceValue(func() map[string]*file {
	out := map[string]*file{}
	names, _ := fs.Glob(dist, "dist/*") // its only error is of the pattern
	for _, name := range names {
		if raw, err := fs.ReadFile(dist, name); err == nil {
			out[path.Base(name)] = packed(path.Base(name), raw)
		}
	}
	return out
})

// Built says whether the page is in this program.
func Built() bool { return files()[document] != nil }

func packed(name string, raw []byte) *file {
	var small bytes.Buffer
	z, _ := gzip.NewWriterLevel(&small, gzip.BestCompression) // the level is one of the library's
	_, _ = z.Write(raw)                                       // to memory
	_ = z.Close()
	sum := sha256.Sum256(raw)
	return &file{
		plain: raw, small: small.Bytes(), kind: mime.TypeByExtension(path.Ext(name)), forever: name != document && strings.Contains(name, "-"),
		tag: `"` + hex.EncodeToString(sum[:8]) + `"`,
	}
}

// Serve answers a request below Base: with a file of the page, or with the document,
// which shows the place that the path names.
func Serve(w http.ResponseWriter, r *http.Request) error {
	all := files()
	name := strings.TrimPrefix(r.URL.Path, Base)
	f := all[name]
	if f == nil {
		if strings.Contains(name, ".") && !strings.Contains(name, "/") {
			return api.Errorf(api.CodeNotFound, "the web page has no file %q", name)
		}
		if f = all[document]; f == nil {
			return api.Errorf(api.CodeNotFound, "this gctld was built without the web page").WithHint("build it by `make build`")
		}
	}
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Vary", "Accept-Encoding")
	h.Set("Etag", f.tag)
	h.Set("Cache-Control", "no-cache")
	if f.forever {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if r.Header.Get("If-None-Match") == f.tag {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	body := f.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = f.small
	}
	_, _ = w.Write(body) // who has gone needs none
	return nil
}

// Home sends browsers that ask for nothing in particular to the page.
func Home(w http.ResponseWriter, r *http.Request) error {
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		return api.Errorf(api.CodeNotFound, "there is nothing at %s %s", r.Method, r.URL.Path).WithHint("the API is described at /openapi.json, the web page is at " + Base)
	}
	http.Redirect(w, r, Base, http.StatusFound)
	return nil
}
