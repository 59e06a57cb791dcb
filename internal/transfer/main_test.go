package transfer

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gbatch/internal/reach"
	"gbatch/internal/transfer/s3test"
)

// server is an S3 and how to reach it.
type server struct {
	*s3test.Server
	at S3
}

func newServer(t *testing.T) *server {
	s := s3test.New(t)
	return &server{s, S3{Endpoint: s.URL, AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey}}
}

func (s *server) count(method string) int { return len(s.Requests(method + " ")) }

// testClient may reach this machine, and tries again at once. It waits for a stalled
// server as long as the node does: the machine may be busy.
func testClient() *Client {
	c := New(reach.Guard{Hosts: []string{"127.0.0.1"}, PlainHTTP: true})
	c.Pause, c.pieceSize = time.Millisecond, 5<<20
	return c
}

// files makes files below a new directory, by name and size, of random bytes.
func files(t *testing.T, sizes map[string]int) string {
	dir := t.TempDir()
	for name, n := range sizes {
		b := make([]byte, n)
		_, _ = rand.Read(b)
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// sums are the checksums of all files below a directory by name.
func sums(t *testing.T, dir string) map[string]string {
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		name, _ := filepath.Rel(dir, p)
		sum := sha256.Sum256(b)
		out[name] = fmt.Sprintf("%d %s", len(b), hex.EncodeToString(sum[:8]))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// put sends a directory to S3.
func put(t *testing.T, c *Client, s *server, dir, uri string) error {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	names, err := Dir{Root: root}.Walk(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	sink, err := c.S3Sink(s.at, uri)
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	return c.Send(t.Context(), Send{URI: uri, Sink: sink, From: Dir{Root: root}, Names: names, Journal: dir + ".journal"})
}

// get fetches from S3 and returns where it is.
func get(t *testing.T, c *Client, s *server, dir, uri string) (Fetched, error) {
	t.Helper()
	src, err := c.S3Source(s.at, uri)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	return c.Fetch(t.Context(), Fetch{URI: uri, Source: src, Dir: dir})
}

// wantKind checks an error's kind and a part of its text.
func wantKind(t *testing.T, err error, kind Kind, text string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Kind != kind || !strings.Contains(err.Error(), text) {
		t.Errorf("error %v, want %s with %q", err, kind, text)
	}
}

// brokenOff answers with the beginning of what the real server would say, and
// then closes the connection.
func brokenOff(w http.ResponseWriter, answer *httptest.ResponseRecorder, n int64) {
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = io.CopyN(w, answer.Body, n)
	panic(http.ErrAbortHandler)
}
