package image

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"gbatch/oci/image/imagetest"
	"gbatch/oci/ref"
)

func TestPull(t *testing.T) {
	f := newRegistry(t)
	r, digest := f.push(t, "a/b:1", small(t, "x"))
	s := open(t, Config{})
	var seen []Progress
	img, err := s.Pull(t.Context(), PullRequest{Ref: r, HoldID: "job", Progress: func(p Progress) { seen = append(seen, p) }})
	if err != nil {
		t.Fatal(err)
	}
	want := ImageConfig{
		Env: []string{"A=b"}, Entrypoint: []string{"/e"}, Cmd: []string{"c"}, WorkingDir: "/w", User: "u:g",
		StopSignal: "SIGINT", Labels: map[string]string{"l": "m"}, ExposedPorts: []string{"80/tcp"},
	}
	if diff := cmp.Diff(want, img.Config); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	if img.Digest != digest || img.Ref != r.WithDigest(digest) {
		t.Errorf("got %s as %s, want %s", img.Digest, img.Ref, digest)
	}
	if len(img.Layers) != 2 || img.Size != int64(len("base of allx")) {
		t.Fatalf("got %d layers of %d bytes", len(img.Layers), img.Size)
	}
	if body, err := os.ReadFile(filepath.Join(img.Layers[1], "etc/seed")); string(body) != "x" {
		t.Errorf("upper layer: %q, %v", body, err)
	}
	last := seen[len(seen)-1]
	if seen[0].Phase != PhaseResolve || last.Phase != PhaseUnpack || last.Bytes != last.Total || last.Total == 0 || last.LayersDone != 2 || last.Layers != 2 {
		t.Errorf("progress from %+v to %+v", seen[0], last)
	}
	if diff := cmp.Diff(map[string]string{"job": digest}, s.Holds()); diff != "" {
		t.Errorf("holds (-want +got):\n%s", diff)
	}
	if left := names(t, s.layout.Tmp); len(left) > 0 {
		t.Errorf("left in tmp: %v", left)
	}
}

func TestWarmPull(t *testing.T) {
	f := newRegistry(t)
	r, digest := f.push(t, "a/b:1", small(t, "x"))
	s := open(t, Config{})
	pull(t, s, r, nil)

	f.reset()
	pull(t, s, r, nil)
	if len(f.seen) != 1 || f.count("HEAD", "/manifests/1") != 1 {
		t.Errorf("a tag that is in the store made requests %v", f.seen)
	}
	f.reset()
	pull(t, s, r.WithDigest(digest), nil)
	if len(f.seen) != 0 {
		t.Errorf("a pinned digest that is in the store made requests %v", f.seen)
	}
	// A tag that moved is noticed.
	_, moved := f.push(t, "a/b:1", small(t, "y"))
	if img := pull(t, s, r, nil); img.Digest != moved {
		t.Errorf("got %s after the tag moved to %s", img.Digest, moved)
	}
	if f.count("GET", "/blobs/") != 2 { // config and one of two layers
		t.Errorf("the shared layer was downloaded again: %v", f.seen)
	}
}

func TestPinnedDigestNeedsNoNetwork(t *testing.T) {
	f := newRegistry(t)
	r, digest := f.push(t, "a/b:1", small(t, "x"))
	c := Config{Dir: filepath.Join(t.TempDir(), "store")}
	s := open(t, c)
	pull(t, s, r, nil)
	s.Close()
	f.Close()

	s = open(t, c)
	if img := pull(t, s, r.WithDigest(digest), nil); len(img.Layers) != 2 {
		t.Errorf("got layers %v", img.Layers)
	}
	_, err := s.Pull(t.Context(), PullRequest{Ref: r})
	if e := wantError(t, err, Unreachable, "cannot be reached: connection refused"); !e.Temporary {
		t.Error("not temporary")
	}
}

func TestConcurrentPullsShareTheWork(t *testing.T) {
	f := newRegistry(t)
	r, _ := f.push(t, "a/b:1", small(t, "x"))
	s := open(t, Config{})
	// All come before the first answer.
	arrived := make(chan struct{})
	f.setFault(func(http.ResponseWriter, *http.Request) bool { <-arrived; return false })
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := s.Pull(t.Context(), PullRequest{Ref: r}); err != nil {
				t.Error(err)
			}
		})
	}
	waitFor(t, func() bool { return waiters(s.pulls, r.String()+" "+anyone) == 8 })
	close(arrived)
	wg.Wait()
	if heads, blobs := f.count("HEAD", "/manifests/"), f.count("GET", "/blobs/"); heads != 1 || blobs != 3 {
		t.Errorf("%d HEADs and %d blobs; want 1 and 3 (config and two layers)", heads, blobs)
	}
}

func waiters[V any](g *flights[V], key string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f := g.running[key]; f != nil {
		return f.waiters
	}
	return 0
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain")
		}
	}
}

// Two users pull different images with a common layer; the one who happens to
// download it gives up.
func TestCancelledPullLeavesOthersUnharmed(t *testing.T) {
	f := newRegistry(t)
	first, _ := f.push(t, "a/first:1", small(t, "x"))
	second, _ := f.push(t, "a/second:1", small(t, "y"))
	base, err := small(t, "x").Layers()
	if err != nil {
		t.Fatal(err)
	}
	shared, _ := base[0].Digest()
	sharedID, _ := base[0].DiffID()
	release := make(chan struct{})
	f.setFault(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, shared.Hex) {
			<-release
		}
		return false
	})
	s := open(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	results := make(chan error, 2)
	go func() { // ends with the test
		_, err := s.Pull(ctx, PullRequest{Ref: first})
		results <- err
	}()
	waitFor(t, func() bool { return waiters(s.layerFlights, sharedID.Hex) == 1 })
	done := make(chan error, 1)
	go func() {
		_, err := s.Pull(t.Context(), PullRequest{Ref: second})
		done <- err
	}()
	waitFor(t, func() bool { return waiters(s.layerFlights, sharedID.Hex) == 2 })
	cancel()
	if err := <-results; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled pull returned %v", err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Errorf("the other pull failed: %v", err)
	}
	if n := f.count("GET", shared.Hex); n != 1 {
		t.Errorf("the shared layer was asked for %d times", n)
	}
}

func TestLastOneToGiveUpStopsTheWork(t *testing.T) {
	f := newRegistry(t)
	r, _ := f.push(t, "a/b:1", small(t, "x"))
	s := open(t, Config{})
	if _, err := s.Resolve(t.Context(), r, nil); err != nil { // so that the worker is there
		t.Fatal(err)
	}
	var asked atomic.Bool
	ended := make(chan struct{}, 1)
	f.setFault(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/manifests/") {
			asked.Store(true)
			<-r.Context().Done()
			ended <- struct{}{}
			return true
		}
		return false
	})
	// On a busy machine it takes longer until the registry is asked.
	for s.config.PullTimeout = 500 * time.Millisecond; !asked.Load(); s.config.PullTimeout *= 2 {
		_, err := s.Pull(t.Context(), PullRequest{Ref: r})
		wantError(t, err, Timeout, fmt.Sprintf("not pulled within %v", s.config.PullTimeout))
	}
	<-ended // the request was really given up
	f.setFault(nil)
	s.config.PullTimeout = time.Minute
	pull(t, s, r, nil)
}

func TestResolve(t *testing.T) {
	f := newRegistry(t)
	r, digest := f.push(t, "a/b:1", small(t, "x"))
	s := open(t, Config{})
	got, err := s.Resolve(t.Context(), r, nil)
	if err != nil || got != digest {
		t.Errorf("Resolve = %s, %v; want %s", got, err, digest)
	}
	if len(s.Images()) != 0 || f.count("GET", "/blobs/") != 0 {
		t.Error("Resolve pulled")
	}
	_, err = s.Resolve(t.Context(), f.ref(t, "a/b:none"), nil)
	wantError(t, err, NotFound, "no such tag at registry "+f.host)
	_, err = s.Resolve(t.Context(), r.WithDigest("sha256:"+strings.Repeat("0", 64)), nil)
	wantError(t, err, NotFound, "no such digest at registry "+f.host)
	_, err = s.Resolve(t.Context(), ref.Ref{Transport: ref.Registry, Registry: "H", Repository: "x"}, nil)
	wantError(t, err, BadReference, "lower case")
}

// A registry that cannot do HEAD is asked by GET.
func TestResolveWithoutHead(t *testing.T) {
	f := newRegistry(t)
	r, digest := f.push(t, "a/b:1", small(t, "x"))
	f.setFault(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodHead {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return true
		}
		return false
	})
	got, err := open(t, Config{}).Resolve(t.Context(), r, nil)
	if err != nil || got != digest {
		t.Errorf("Resolve = %s, %v; want %s", got, err, digest)
	}
}

func TestPlatforms(t *testing.T) {
	f := newRegistry(t)
	arm := build(t, imagetest.Options{Platform: "linux/arm64", Layers: [][]imagetest.File{{{Name: "arm"}}}})
	amd := build(t, imagetest.Options{Platform: "linux/amd64", Layers: [][]imagetest.File{{{Name: "amd"}}}})
	multi := f.ref(t, "multi:1")
	digest, err := imagetest.PushIndex(multi, map[string]v1.Image{"linux/amd64": amd, "linux/arm64": arm}, nil)
	if err != nil {
		t.Fatal(err)
	}
	onlyArm, _ := f.push(t, "arm:1", arm)

	s := open(t, Config{Platform: "linux/amd64"})
	img := pull(t, s, multi, nil)
	if img.Digest != digest {
		t.Errorf("pinned to %s; want the index %s", img.Digest, digest)
	}
	if got := names(t, img.Layers[0]); got[0] != "amd" {
		t.Errorf("the layer holds %v", got)
	}
	pull(t, s, img.Ref, nil)
	_, err = s.Pull(t.Context(), PullRequest{Ref: onlyArm})
	wantError(t, err, Unsupported, "is made for linux/arm64, this node is linux/amd64")
	s = open(t, Config{Platform: "linux/riscv64"})
	_, err = s.Pull(t.Context(), PullRequest{Ref: multi})
	wantError(t, err, Unsupported, "is not made for linux/riscv64; it has linux/amd64, linux/arm64")
}

func TestUnsupportedImages(t *testing.T) {
	f := newRegistry(t)
	s := open(t, Config{})
	none := build(t, imagetest.Options{})
	r, _ := f.push(t, "none:1", none)
	_, err := s.Pull(t.Context(), PullRequest{Ref: r})
	wantError(t, err, Unsupported, "has no layers")

	chart := mutate.ConfigMediaType(small(t, "x"), "application/vnd.cncf.helm.config.v1+json")
	r, _ = f.push(t, "chart:1", chart)
	_, err = s.Pull(t.Context(), PullRequest{Ref: r})
	wantError(t, err, Unsupported, `is not a container image but "application/vnd.cncf.helm.config.v1+json"`)
}

func TestTooManyLayers(t *testing.T) {
	var m v1.Manifest
	var cfg v1.ConfigFile
	for i := range maxLayers + 1 {
		h := v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("0", 60) + strconv.Itoa(1000+i)}
		m.Layers = append(m.Layers, v1.Descriptor{Digest: h})
		cfg.RootFS.DiffIDs = append(cfg.RootFS.DiffIDs, h)
	}
	_, err := pairLayers(&m, &cfg)
	wantError(t, err, Unsupported, "has 401 layers where 400 can be mounted")
	m.Layers = m.Layers[:maxLayers]
	_, err = pairLayers(&m, &cfg)
	wantError(t, err, Corrupt, "has 400 layers in its manifest and 401 in its config")
	cfg.RootFS.DiffIDs = cfg.RootFS.DiffIDs[:maxLayers]
	if _, err = pairLayers(&m, &cfg); err != nil {
		t.Error(err)
	}
}

// The same layer twice is legal; overlay takes it once.
func TestDuplicateLayers(t *testing.T) {
	f := newRegistry(t)
	a, b := []imagetest.File{{Name: "x", Body: []byte("a")}}, []imagetest.File{{Name: "x", Body: []byte("b")}}
	r, _ := f.push(t, "dup:1", build(t, imagetest.Options{Layers: [][]imagetest.File{a, b, a}}))
	img := pull(t, open(t, Config{}), r, nil)
	if len(img.Layers) != 2 {
		t.Fatalf("got layers %v", img.Layers)
	}
	if body, _ := os.ReadFile(img.Layers[1] + "/x"); string(body) != "a" {
		t.Errorf("the upper layer holds %q", body)
	}
}

func TestZstd(t *testing.T) {
	f := newRegistry(t)
	r, _ := f.push(t, "z:1", build(t, imagetest.Options{Zstd: true, Layers: [][]imagetest.File{{{Name: "x", Body: []byte("body")}}}}))
	img := pull(t, open(t, Config{}), r, nil)
	if body, _ := os.ReadFile(img.Layers[0] + "/x"); string(body) != "body" {
		t.Errorf("got %q", body)
	}
}
