// Package s3test is an S3 server for tests, on loopback: objects in memory,
// parts, ranges and conditions, and signatures that are checked. It can be made
// to misbehave.
package s3test

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// The keys that the server takes.
const (
	AccessKey = "TESTKEY"
	SecretKey = "test-secret-key-5b1c"
)

// Server is a running server. Buckets come by being used.
type Server struct {
	URL     string
	Handler http.Handler // behind the check of signatures

	mu       sync.Mutex // guards what follows
	requests []string
	hook     func(http.ResponseWriter, *http.Request) bool
}

// New starts a server that ends with the test.
func New(t testing.TB) *Server {
	s := &Server{}
	s.Handler = gofakes3.New(s3mem.New(), gofakes3.WithAutoBucket(true), gofakes3.WithTimeSkewLimit(0)).Server()
	web := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	s.URL = web.URL
	return s
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path+" "+r.URL.RawQuery+" "+r.Header.Get("Range"))
	hook := s.hook
	s.mu.Unlock()
	if code := verify(r); code != "" {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`<?xml version="1.0"?><Error><Code>` + code + `</Code><Message>no</Message></Error>`))
		return
	}
	if hook != nil && hook(w, r) {
		return
	}
	s.Handler.ServeHTTP(w, plain(r))
}

// plain is a request whose body has what was sent in signed chunks, as S3's
// clients do without TLS, in one piece: the server in memory does not undo that
// everywhere.
func plain(r *http.Request) *http.Request {
	out := r.Clone(r.Context())
	if n := r.Header.Get("X-Amz-Decoded-Content-Length"); n != "" && strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		out.Body = io.NopCloser(&chunks{in: bufio.NewReader(r.Body)})
		out.ContentLength, _ = strconv.ParseInt(n, 10, 64)
		out.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
		out.Header.Del("Content-Encoding")
		out.Header.Del("X-Amz-Decoded-Content-Length")
	}
	if out.ContentLength >= 0 {
		out.Header.Set("Content-Length", strconv.FormatInt(out.ContentLength, 10))
	}
	return out
}

// chunks reads LENGTH;chunk-signature=...CRLF DATA CRLF until a length of 0.
type chunks struct {
	in   *bufio.Reader
	left int64
	end  bool
}

func (c *chunks) Read(p []byte) (int, error) {
	if c.end {
		return 0, io.EOF
	}
	if c.left == 0 {
		line, err := c.in.ReadString('\n')
		if err != nil {
			return 0, io.ErrUnexpectedEOF
		}
		size, _, _ := strings.Cut(strings.TrimSpace(line), ";")
		if c.left, err = strconv.ParseInt(size, 16, 64); err != nil {
			return 0, err
		}
		if c.left == 0 {
			c.end = true
			return 0, io.EOF
		}
	}
	n, err := c.in.Read(p[:min(int64(len(p)), c.left)])
	if c.left -= int64(n); c.left == 0 && err == nil {
		_, err = c.in.Discard(2)
	}
	return n, err
}

// Hook sets a function that sees each request before the server does, and returns
// true where it has answered it; nil: none. The requests until now are forgotten.
func (s *Server) Hook(h func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook, s.requests = h, nil
}

// Requests are the requests since the last Hook whose method and path begin with prefix.
func (s *Server) Requests(prefix string) (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if strings.HasPrefix(r, prefix) {
			list = append(list, r)
		}
	}
	return list
}

// Put stores an object without asking who does.
func (s *Server) Put(bucketAndKey string, body string) {
	w := httptest.NewRecorder()
	bucket, _, _ := strings.Cut(bucketAndKey, "/")
	s.Handler.ServeHTTP(httptest.NewRecorder(), plain(httptest.NewRequest(http.MethodPut, "/"+bucket, nil)))
	s.Handler.ServeHTTP(w, plain(httptest.NewRequest(http.MethodPut, "/"+bucketAndKey, strings.NewReader(body))))
	if w.Code != http.StatusOK {
		panic("put " + bucketAndKey + ": " + w.Body.String())
	}
}

// Get is an object's content, and whether it is there.
func (s *Server) Get(bucketAndKey string) (string, bool) {
	w := httptest.NewRecorder()
	s.Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/"+bucketAndKey, nil))
	return w.Body.String(), w.Code == http.StatusOK
}

// verify checks a request's AWS4-HMAC-SHA256 signature, and returns the code
// of the error if it is wrong.
func verify(r *http.Request) string {
	auth, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	if !ok {
		return "AccessDenied"
	}
	fields := map[string]string{}
	for part := range strings.SplitSeq(auth, ",") {
		k, v, _ := strings.Cut(strings.TrimSpace(part), "=")
		fields[k] = v
	}
	scope := strings.Split(fields["Credential"], "/")
	if len(scope) != 5 || scope[0] != AccessKey {
		return "InvalidAccessKeyId"
	}
	signed := strings.Split(fields["SignedHeaders"], ";")
	var headers strings.Builder
	for _, name := range signed {
		v := r.Header.Get(name)
		switch name {
		case "host":
			v = r.Host
		case "content-length":
			v = r.Header.Get("Content-Length")
		}
		headers.WriteString(name + ":" + strings.Join(strings.Fields(v), " ") + "\n")
	}
	if !slices.Contains(signed, "host") || !slices.Contains(signed, "x-amz-date") {
		return "AccessDenied"
	}
	request := strings.Join([]string{r.Method, escapePath(r.URL.Path), strings.ReplaceAll(r.URL.Query().Encode(), "+", "%20"),
		headers.String(), fields["SignedHeaders"], r.Header.Get("X-Amz-Content-Sha256")}, "\n")
	sum := sha256.Sum256([]byte(request))
	text := "AWS4-HMAC-SHA256\n" + r.Header.Get("X-Amz-Date") + "\n" + strings.Join(scope[1:], "/") + "\n" + hex.EncodeToString(sum[:])
	key := []byte("AWS4" + SecretKey)
	for _, part := range scope[1:] {
		key = mac(key, part)
	}
	if !hmac.Equal([]byte(hex.EncodeToString(mac(key, text))), []byte(fields["Signature"])) {
		return "SignatureDoesNotMatch"
	}
	return ""
}

func mac(key []byte, text string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text))
	return m.Sum(nil)
}

func escapePath(p string) string {
	parts := strings.Split(p, "/")
	for i, part := range parts {
		parts[i] = strings.ReplaceAll(url.QueryEscape(part), "+", "%20")
	}
	return strings.Join(parts, "/")
}
