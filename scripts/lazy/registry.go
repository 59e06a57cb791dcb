package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"golang.org/x/time/rate"
)

// serve is a registry with one image behind a link. The link's latency is one of each request, as
// connections stay open.
func serve(l *layer, over link) *httptest.Server {
	pace := rate.NewLimiter(rate.Limit(over.bytes), 1<<20)
	blobs := map[string][]byte{l.digest.String(): l.blob, digest.FromBytes(l.config).String(): l.config}
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(over.latency)
		paced := pacedWriter{w, pace}
		_, name, _ := strings.Cut(r.URL.Path, "/blobs/")
		switch body, ok := blobs[name]; {
		case ok:
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header().Set("Docker-Content-Digest", name)
			http.ServeContent(paced, r, "", time.Time{}, bytes.NewReader(body))
		case strings.Contains(r.URL.Path, "/manifests/"):
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			w.Header().Set("Docker-Content-Digest", digest.FromBytes(l.manifest).String())
			http.ServeContent(paced, r, "", time.Time{}, bytes.NewReader(l.manifest))
		case r.URL.Path == "/v2/":
		default:
			http.NotFound(w, r)
		}
	}))
}

type pacedWriter struct {
	http.ResponseWriter
	pace *rate.Limiter
}

func (w pacedWriter) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		part := p[:min(len(p), 64<<10)]
		if err := w.pace.WaitN(context.Background(), len(part)); err != nil {
			return n, err
		}
		m, err := w.ResponseWriter.Write(part)
		n += m
		if err != nil {
			return n, err
		}
		p = p[m:]
	}
	return n, nil
}
