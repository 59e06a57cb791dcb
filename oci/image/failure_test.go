package image

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/sys/unix"

	"gbatch/oci/image/imagetest"
	"gbatch/oci/ref"
)

// Only what may pass is tried again, with growing pauses.
func TestRetries(t *testing.T) {
	answer := func(status int) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool { w.WriteHeader(status); return true }
	}
	cases := map[string]struct {
		status int
		tries  int
		kind   Kind
		part   string
	}{
		"unavailable": {503, 5, Unreachable, "answered 503 Service Unavailable"},
		"rate_limit":  {429, 5, Unreachable, "limits the rate of pulls"},
		"denied":      {403, 1, Denied, "wants a login"},
		"missing":     {404, 1, NotFound, "no such tag"},
		"teapot":      {418, 2, Unreachable, "answered 418 I'm a teapot"}, // HEAD, then GET
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newRegistry(t)
			r, _ := f.push(t, "a/b:1", small(t, "x"))
			f.setFault(func(w http.ResponseWriter, r *http.Request) bool {
				return strings.Contains(r.URL.Path, "/manifests/") && answer(tc.status)(w, r)
			})
			var pauses []time.Duration
			s := open(t, Config{Sleep: func(_ context.Context, d time.Duration) error { pauses = append(pauses, d); return nil }})
			_, err := s.Pull(t.Context(), PullRequest{Ref: r})
			wantError(t, err, tc.kind, tc.part)
			if got := f.count("HEAD", "/manifests/") + f.count("GET", "/manifests/"); got != tc.tries {
				t.Errorf("%d tries, want %d", got, tc.tries)
			}
			if tc.tries == 5 {
				ms := time.Millisecond
				if diff := cmp.Diff([]time.Duration{500 * ms, 1000 * ms, 2000 * ms, 4000 * ms}, pauses); diff != "" {
					t.Errorf("pauses (-want +got):\n%s", diff)
				}
			} else if len(pauses) > 0 {
				t.Errorf("paused %v", pauses)
			}
		})
	}
}

func TestBrokenDownloadIsTriedAgain(t *testing.T) {
	f := newRegistry(t)
	img := small(t, "x")
	r, _ := f.push(t, "a/b:1", img)
	layers, _ := img.Layers()
	digest, _ := layers[1].Digest()
	broken := 2
	f.setFault(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, digest.Hex) || broken == 0 {
			return false
		}
		broken--
		w.Header().Set("Content-Length", "100000")
		w.Write([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0})
		return true
	})
	pull(t, open(t, Config{}), r, nil)
	if n := f.count("GET", digest.Hex); n != 3 {
		t.Errorf("%d downloads", n)
	}
}

func TestWrongBytes(t *testing.T) {
	f := newRegistry(t)
	img := small(t, "x")
	r, _ := f.push(t, "a/b:1", img)
	layers, _ := img.Layers()
	digest, _ := layers[0].Digest()
	other, _ := small(t, "yy").Layers()
	f.setFault(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, digest.Hex) {
			return false
		}
		rc, _ := other[1].Compressed()
		defer rc.Close()
		raw := make([]byte, 1<<16)
		n, _ := rc.Read(raw)
		w.Write(raw[:n])
		return true
	})
	s := open(t, Config{})
	_, err := s.Pull(t.Context(), PullRequest{Ref: r})
	wantError(t, err, Corrupt, "layer 1 is corrupt: what registry "+f.host+" sent does not match its digest")
	if n := f.count("GET", digest.Hex); n != 1 {
		t.Errorf("%d downloads of wrong bytes", n)
	}
	if _, ok := s.layerIntact(digest.Hex); ok {
		t.Error("the layer is in the store")
	}
}

func TestStalledDownload(t *testing.T) {
	t.Parallel() // it waits
	f := newRegistry(t)
	img := small(t, "x")
	r, _ := f.push(t, "a/b:1", img)
	layers, _ := img.Layers()
	digest, _ := layers[1].Digest()
	f.setFault(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, digest.Hex) {
			return false
		}
		w.Header().Set("Content-Length", "100000")
		w.Write([]byte{0x1f})
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	})
	s := open(t, Config{StallTimeout: 5 * time.Second, Retries: 1})
	_, err := s.Pull(t.Context(), PullRequest{Ref: r})
	wantError(t, err, Unreachable, "cannot be reached: the download stalled")
	if n := f.count("GET", digest.Hex); n != 2 {
		t.Errorf("%d downloads", n)
	}
}

// TestSilentRegistry: a registry that says nothing is asked once more at most, and one whose layer
// comes drop by drop is given up as if it had stalled: what waits for the image holds GPUs.
func TestSilentRegistry(t *testing.T) {
	t.Parallel() // it waits
	f := newRegistry(t)
	img := small(t, "x")
	r, _ := f.push(t, "a/b:1", img)
	f.setFault(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/manifests/") {
			<-r.Context().Done()
			return true
		}
		return false
	})
	s := open(t, Config{StallTimeout: 5 * time.Second, Retries: 4})
	_, err := s.Pull(t.Context(), PullRequest{Ref: r})
	wantError(t, err, Unreachable, "no answer in time")
	if n := f.count("HEAD", "/manifests/") + f.count("GET", "/manifests/"); n != 1 {
		t.Errorf("asked %d times", n)
	}

	layers, _ := img.Layers()
	digest, _ := layers[1].Digest()
	f.setFault(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, digest.Hex) {
			return false
		}
		w.Header().Set("Content-Length", "100000")
		for drop := time.NewTicker(50 * time.Millisecond); ; {
			if _, err := w.Write([]byte{0x1f}); err != nil {
				return true
			}
			w.(http.Flusher).Flush()
			select {
			case <-drop.C:
			case <-r.Context().Done():
				return true
			}
		}
	})
	s = open(t, Config{StallTimeout: 5 * time.Second, Retries: 4})
	_, err = s.Pull(t.Context(), PullRequest{Ref: r})
	wantError(t, err, Unreachable, "the download stalled")
	if n := f.count("GET", digest.Hex); n != 2 {
		t.Errorf("%d downloads", n)
	}
}

// A tag is gone, or the name cannot be looked up, or nobody listens.
func TestUnreachable(t *testing.T) {
	s := open(t, Config{Retries: -1})
	_, err := s.Pull(t.Context(), PullRequest{Ref: parse(t, "127.0.0.1:1/a/b")})
	wantError(t, err, Unreachable, "image 127.0.0.1:1/a/b: registry 127.0.0.1:1 cannot be reached: connection refused")

	for name, tc := range map[string]struct {
		err       error
		part      string
		temporary bool
	}{
		"no_host":      {&net.DNSError{IsNotFound: true}, "no such host", false},
		"no_dns":       {&net.DNSError{IsTimeout: true}, "cannot be looked up now", true},
		"timeout":      {fmt.Errorf("x: %w", context.DeadlineExceeded), "no answer in time", true},
		"reset":        {&net.OpError{Err: unix.ECONNRESET}, "broke off", true},
		"plain":        {http.ErrSchemeMismatch, "speaks plain http; list it", false},
		"plain_silent": {errors.Join(http.ErrSchemeMismatch, context.DeadlineExceeded), "no answer in time", true},
		"ca":           {&url.Error{URL: "https://h/?X-Signature=1", Err: x509.UnknownAuthorityError{}}, "signed by an unknown authority; put the CA", false},
		"hostname":     {x509.HostnameError{Certificate: &x509.Certificate{}}, "another host name", false},
		"unknown":      {&url.Error{URL: "https://h/?X-Signature=1", Err: errors.New("odd")}, "reached: odd", false},
		"tls_junk":     {tls.RecordHeaderError{}, "speaks plain http; list it", false},
	} {
		t.Run(name, func(t *testing.T) {
			e := classifyRemote(tc.err, "h", "")
			if e.Kind != Unreachable || !strings.Contains(e.Detail, tc.part) || e.Temporary != tc.temporary {
				t.Errorf("got %+v", e)
			}
		})
	}
}

// smallDisk mounts a tmpfs and opens a store in it.
func smallDisk(t *testing.T, options string, c Config) (dir string, s *Store) {
	t.Helper()
	needRoot(t)
	dir = t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("SKIPPED: no tmpfs can be mounted here: %v", err)
	}
	t.Cleanup(func() { // after the store is closed
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	c.Dir = filepath.Join(dir, "store")
	return dir, open(t, c)
}

// An image that does not fit is refused as such; a disk that is full whatever
// the image is the node's fault.
func TestDiskFull(t *testing.T) {
	f := newRegistry(t)
	body := []byte(strings.Repeat("zero, more or less. ", 200_000))
	big, _ := f.push(t, "a/b:1", build(t, imagetest.Options{Layers: [][]imagetest.File{{{Name: "big", Body: body}}}}))
	little, _ := f.push(t, "a/c:1", small(t, "x"))
	dir, s := smallDisk(t, "size=2m", Config{MinFree: 100 << 10})
	_, err := s.Pull(t.Context(), PullRequest{Ref: big})
	if e := wantError(t, err, Unsupported, "it does not fit on this node, which has 1 MiB"); e.Fault() != FaultUser {
		t.Errorf("fault of %s", e.Fault())
	}
	if left := names(t, s.layout.Tmp); len(left) > 0 {
		t.Errorf("left in tmp: %v", left)
	}
	write(t, dir, "filler", string(make([]byte, 1960<<10)))
	_, err = s.Pull(t.Context(), PullRequest{Ref: little})
	if e := wantError(t, err, DiskFull, "the node's image store is full"); e.Fault() != FaultNode {
		t.Errorf("fault of %s", e.Fault())
	}
	if err := os.Remove(filepath.Join(dir, "filler")); err != nil {
		t.Fatal(err)
	}
	pull(t, s, little, nil)
}

// tlsRegistry holds small(t, "x") as a/b:1. ca is its certificate.
func tlsRegistry(t *testing.T, auth tls.ClientAuthType) (f *fakeRegistry, r ref.Ref, ca string) {
	t.Helper()
	f = &fakeRegistry{}
	f.Server = httptest.NewUnstartedServer(f.handler())
	f.Config.ErrorLog = quiet()
	f.TLS = &tls.Config{ClientAuth: auth}
	f.StartTLS()
	t.Cleanup(f.Close)
	f.host = strings.TrimPrefix(f.URL, "https://")
	repo, err := name.NewRepository(f.host + "/a/b")
	if err != nil {
		t.Fatal(err)
	}
	client := f.Client().Transport.(*http.Transport)
	client.TLSClientConfig.Certificates = f.TLS.Certificates
	if err := remote.Write(repo.Tag("1"), small(t, "x"), remote.WithTransport(client)); err != nil {
		t.Fatal(err)
	}
	return f, f.ref(t, "a/b:1"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw}))
}

// TLS with the site's own CA; nothing else but loopback may be plain.
func TestTLS(t *testing.T) {
	f, r, ca := tlsRegistry(t, tls.NoClientCert)
	// On loopback, plain http is tried as well and is what is reported.
	_, err := open(t, Config{}).Pull(t.Context(), PullRequest{Ref: r})
	wantError(t, err, Unreachable, "registry "+f.host)
	for _, dir := range []string{".", f.host} {
		certs := t.TempDir()
		write(t, filepath.Join(certs, dir), "site.crt", ca)
		pull(t, open(t, Config{CertsDir: certs}), r, nil)
	}
	certs := t.TempDir()
	write(t, certs, "site.crt", "no certificate")
	_, err = open(t, Config{CertsDir: certs}).Pull(t.Context(), PullRequest{Ref: r})
	wantError(t, err, Internal, "no certificate in it")
}

// A registry that wants a certificate of the node; its own will do here.
func TestClientCertificate(t *testing.T) {
	f, r, ca := tlsRegistry(t, tls.RequireAnyClientCert)
	certs := t.TempDir()
	write(t, certs, "site.crt", ca)
	_, err := open(t, Config{CertsDir: certs, Retries: -1}).Pull(t.Context(), PullRequest{Ref: r})
	wantError(t, err, Unreachable, "registry "+f.host)

	key, err := x509.MarshalPKCS8PrivateKey(f.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(certs, f.host), "node.cert", ca)
	write(t, filepath.Join(certs, f.host), "node.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
	pull(t, open(t, Config{CertsDir: certs}), r, nil)
}

// The registry client would fall back to http for private addresses, and send
// the password in the clear.
func TestNoPlainHTTPUnlessAllowed(t *testing.T) {
	insecure := []string{"plain.example:5000", "any.example"}
	for host, want := range map[string]bool{
		"localhost:5000": true, "127.0.0.1:5000": true, "[::1]:5000": true, "x.localhost": true, "plain.example:5000": true, "any.example:1": true,
		"10.0.0.1:5000": false, "192.168.1.1": false, "plain.example:80": false, "plain.example": false, "docker.io": false, "localhost.evil": false,
	} {
		if got := plainHTTP(host, insecure); got != want {
			t.Errorf("plainHTTP(%q) = %v", host, got)
		}
	}
	rt := newTransport(&session{Insecure: insecure}, nil, (&net.Dialer{}).DialContext)
	req := httptest.NewRequest(http.MethodGet, "http://10.0.0.1:5000/v2/", nil)
	if _, err := rt.RoundTrip(req); !errors.Is(err, http.ErrSchemeMismatch) {
		t.Errorf("plain request to a private address: %v", err)
	}
}
