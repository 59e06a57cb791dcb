package image

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/oci/atomicfile"
	"gbatch/oci/image/imagetest"
	"gbatch/oci/image/layout"
	"gbatch/oci/ref"
)

func TestConfigProblemsAreReportedTogether(t *testing.T) {
	_, err := Open(Config{Dir: "rel", LocalRoots: []string{"also"}, Mirrors: map[string][]string{"a": {"https://b"}}, Platform: "linux"})
	for _, part := range []string{`"rel" is not an absolute path`, `"also" is not`, `mirror "https://b" of a`, `platform "linux" is not`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v\ndoes not say %s", err, part)
		}
	}
}

func TestOneProcessAtATime(t *testing.T) {
	s := open(t, Config{})
	if _, err := Open(Config{Dir: s.config.Dir, Dial: s.config.Dial}); err == nil || !strings.Contains(err.Error(), "another process uses it") {
		t.Errorf("second Open: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, Config{Dir: s.config.Dir})
}

// Whatever of an image is lost or damaged, the next pull notices and repairs
// it, in a running store and in one that is opened again.
func TestDamage(t *testing.T) {
	damages := map[string]func(t *testing.T, s *Store, img *Image) string{
		"layer_directory": func(t *testing.T, s *Store, img *Image) string { return img.Layers[1] },
		"all_layers":      func(t *testing.T, s *Store, img *Image) string { return s.layout.Layers },
		"all_blobs":       func(t *testing.T, s *Store, img *Image) string { return s.layout.Blobs },
		"layers_and_what_is_made": func(t *testing.T, s *Store, img *Image) string {
			if err := os.RemoveAll(s.layout.Workers); err != nil {
				t.Fatal(err)
			}
			return s.layout.Layers
		},
		"whole_layer": func(t *testing.T, s *Store, img *Image) string { return filepath.Dir(img.Layers[0]) },
		"marker": func(t *testing.T, s *Store, img *Image) string {
			return filepath.Join(filepath.Dir(img.Layers[0]), layout.MarkerName)
		},
		"config": func(t *testing.T, s *Store, img *Image) string {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.layout.Blob(s.images[img.Digest].Config.Hex)
		},
		"manifest": func(t *testing.T, s *Store, img *Image) string {
			return s.layout.Blobs + "/" + strings.TrimPrefix(img.Digest, "sha256:")
		},
		"record": func(t *testing.T, s *Store, img *Image) string { return s.layout.Record(img.Digest) },
	}
	for name, find := range damages {
		for _, reopen := range []bool{false, true} {
			for _, how := range []string{"removed", "overwritten"} {
				t.Run(fmt.Sprintf("%s_%s_reopen_%v", name, how, reopen), func(t *testing.T) {
					f := newRegistry(t)
					r, digest := f.push(t, "a/b:1", small(t, "x"))
					s := open(t, Config{})
					what := find(t, s, pull(t, s, r, nil))
					info, err := os.Stat(what)
					if err != nil {
						t.Fatal(err)
					}
					if how == "overwritten" && (info.IsDir() || !reopen && (name == "marker" || name == "record")) {
						return // a running store has these in memory
					}
					if err := os.RemoveAll(what); err != nil {
						t.Fatal(err)
					}
					if how == "overwritten" {
						write(t, filepath.Dir(what), filepath.Base(what), `{"digest":"nonsense`)
					}
					if reopen {
						s.Close()
						s = open(t, Config{Dir: s.config.Dir})
					}
					img := pull(t, s, r.WithDigest(digest), nil)
					if body, err := os.ReadFile(img.Layers[1] + "/etc/seed"); string(body) != "x" {
						t.Errorf("upper layer: %q, %v", body, err)
					}
					if body, err := os.ReadFile(img.Layers[0] + "/etc/base"); string(body) != "base of all" {
						t.Errorf("lower layer: %q, %v", body, err)
					}
				})
			}
		}
	}
}

// The process is killed in the middle of a layer; only tmp holds anything of
// it, and the next Open sweeps that.
func TestKilledWhileUnpacking(t *testing.T) {
	needRoot(t)
	if dir := os.Getenv("IMAGE_TEST_KILLED_DIR"); dir != "" {
		s, err := Open(Config{Dir: dir, Dial: (&net.Dialer{}).DialContext})
		if err != nil {
			t.Fatal(err)
		}
		r, _, _ := ref.Parse(os.Getenv("IMAGE_TEST_KILLED_REF"))
		_, err = s.Pull(t.Context(), PullRequest{Ref: r})
		t.Fatalf("the pull ended: %v", err)
	}
	f := newRegistry(t)
	body := noise(4 << 20) // not compressible, so it takes several writes
	img := build(t, imagetest.Options{Layers: [][]imagetest.File{{{Name: "done"}}, {{Name: "first"}, {Name: "big", Body: body}}}})
	r, _ := f.push(t, "a/b:1", img)
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	big, _ := layers[1].Digest()
	half := make([]byte, 1<<20)
	f.setFault(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, big.Hex) || r.Method != http.MethodGet {
			return false
		}
		rc, _ := layers[1].Compressed()
		defer rc.Close()
		n, _ := rc.Read(half)
		w.Write(half[:n])
		w.(http.Flusher).Flush()
		<-r.Context().Done() // the rest never comes
		return true
	})
	dir := filepath.Join(t.TempDir(), "store")
	child := exec.Command(os.Args[0], "-test.run=^TestKilledWhileUnpacking$")
	child.Env = append(os.Environ(), "IMAGE_TEST_KILLED_DIR="+dir, "IMAGE_TEST_KILLED_REF="+r.String())
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool {
		first, _ := filepath.Glob(dir + "/workers/*/*/first")
		done, _ := filepath.Glob(dir + "/layers/*/fs/done")
		return len(first) == 1 && len(done) == 1
	})
	child.Process.Kill()
	child.Wait()
	if left := names(t, dir+"/tmp"); len(left) == 0 {
		t.Fatal("nothing was left behind; the test proves nothing")
	}
	f.setFault(nil)
	f.reset()
	s := open(t, Config{Dir: dir})
	if left := names(t, s.layout.Tmp); len(left) > 0 {
		t.Errorf("left in tmp: %v", left)
	}
	if got := len(names(t, s.layout.Layers)); got != 1 || len(s.Images()) != 0 {
		t.Errorf("%d layers and %d images after the crash", got, len(s.Images()))
	}
	pull(t, s, r, nil)
	if n := f.count("GET", "/blobs/"); n != 2 { // config and the big layer
		t.Errorf("%d blobs were downloaded: %v", n, f.seen)
	}
}

func noise(n int) []byte {
	body := make([]byte, n)
	for i, x := 0, uint32(1); i < n; i++ {
		x = x*1664525 + 1013904223
		body[i] = byte(x >> 24)
	}
	return body
}

// After a crash of the machine, an image may not be on disk in full, nor may a
// layer that no image needs.
func TestLayersOfAnotherBoot(t *testing.T) {
	f := newRegistry(t)
	r, digest := f.push(t, "a/b:1", small(t, "x"))
	s := open(t, Config{})
	img := pull(t, s, r, nil)
	s.work.Wait() // until it is on disk
	for _, dir := range img.Layers {
		marker := filepath.Join(filepath.Dir(dir), layout.MarkerName)
		var info unpacked
		if err := atomicfile.ReadJSON(marker, &info); err != nil {
			t.Fatal(err)
		}
		info.Boot = "another"
		if err := writeJSON(marker, info); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	s = open(t, Config{Dir: s.config.Dir})
	if n := len(names(t, s.layout.Layers)); n != 2 {
		t.Errorf("%d layers of an image are left", n)
	}
	if n := len(s.Images()); n != 1 {
		t.Errorf("%d images that were on disk are left", n)
	}
	if err := s.Hold("container of then", digest); err != nil {
		t.Fatal(err)
	}
	s.Close()
	record := s.layout.Record(digest)
	raw, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	raw = bytes.Replace(raw, []byte(`"synced":true`), []byte(`"synced":false`), 1)
	raw = bytes.Replace(raw, []byte(s.boot), []byte("another"), 1)
	write(t, filepath.Dir(record), filepath.Base(record), string(raw))
	s = open(t, Config{Dir: s.config.Dir})
	if images, layers := s.Images(), names(t, s.layout.Layers); len(images) != 0 || len(layers) != 0 {
		t.Errorf("left of what was not on disk: %v, %v", images, layers)
	}
	pull(t, s, r, nil)
}

func TestHolds(t *testing.T) {
	f := newRegistry(t)
	r, digest := f.push(t, "a/b:1", small(t, "x"))
	s := open(t, Config{MaxBytes: 1})
	if err := s.Hold("job/1 ü", digest); err == nil || !strings.Contains(err.Error(), "pull it first") {
		t.Errorf("hold of an absent image: %v", err)
	}
	img := pull(t, s, r, nil)
	for range 2 {
		if err := s.Hold("job/1 ü", digest); err != nil {
			t.Fatal(err)
		}
	}
	later := time.Now().Add(time.Hour)
	s.Close()
	// Even if the record is lost, what a container runs on stays.
	os.Remove(s.layout.Record(digest))
	s = open(t, Config{Dir: s.config.Dir, MaxBytes: 1})
	if _, err := s.Load(digest); !errors.Is(err, errAbsent) {
		t.Errorf("Load without a record: %v", err)
	}
	if diff := cmp.Diff(map[string]string{"job/1 ü": digest}, s.Holds()); diff != "" {
		t.Errorf("after a restart (-want +got):\n%s", diff)
	}
	if c, err := s.GC(later); err != nil || len(c.Images) != 0 {
		t.Errorf("GC = %+v, %v", c, err)
	}
	if _, err := os.Stat(img.Layers[0]); err != nil {
		t.Error(err)
	}
	img = pull(t, s, r, nil)
	loaded, err := s.Load(digest)
	if err != nil {
		t.Fatal(err)
	}
	loaded.Ref = img.Ref
	if diff := cmp.Diff(img, loaded); diff != "" {
		t.Errorf("Load (-pulled +loaded):\n%s", diff)
	}
	for range 2 {
		if err := s.Release("job/1 ü"); err != nil {
			t.Error(err)
		}
	}
	if c, err := s.GC(later); err != nil || len(c.Images) != 1 {
		t.Errorf("GC after release = %+v, %v", c, err)
	}
	if left := append(names(t, s.layout.Layers), append(names(t, s.layout.Blobs), append(names(t, s.layout.Holds), names(t, s.layout.Tmp)...)...)...); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestGC(t *testing.T) {
	f := newRegistry(t)
	clock := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	var mu sync.Mutex
	now := func() time.Time { mu.Lock(); defer mu.Unlock(); return clock }
	tick := func(d time.Duration) { mu.Lock(); clock = clock.Add(d); mu.Unlock() }
	// Each image: 11 shared bytes and 100 of its own.
	c := Config{MaxBytes: 11 + 200, Now: now}
	s := open(t, c)
	var refs []ref.Ref
	for i := range 4 {
		r, digest := f.push(t, fmt.Sprintf("a/b%d:1", i), small(t, strings.Repeat(string(rune('a'+i)), 100)))
		pull(t, s, r, nil)
		refs = append(refs, r.WithDigest(digest))
		tick(time.Hour)
	}
	pull(t, s, refs[0], nil) // now it is the newest
	tick(time.Second)
	if err := s.Hold("job", refs[1].Digest); err != nil {
		t.Fatal(err)
	}
	s.Close()
	c.Dir = s.config.Dir
	s = open(t, c) // last use survives
	got, err := s.GC(now())
	if err != nil {
		t.Fatal(err)
	}
	// 1 is held; 2 and 3 are the oldest then, and go until the rest fits.
	want := Collected{Images: []string{refs[2].Digest, refs[3].Digest}, Freed: 200, Kept: 211}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var left []string
	for _, info := range s.Images() {
		left = append(left, fmt.Sprint(info.Refs, info.Size, info.Holds))
	}
	if diff := cmp.Diff([]string{"[" + f.host + "/a/b0:1] 111 []", "[" + f.host + "/a/b1:1] 111 [job]"}, left); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
	// A just used image stays, whatever the limit: someone is about to hold it.
	s.config.MaxBytes = 1
	if got, _ = s.GC(now()); len(got.Images) != 0 {
		t.Errorf("GC removed an image in its first minute: %v", got)
	}
	tick(time.Hour)
	if got, _ = s.GC(now()); len(got.Images) != 1 || got.Kept != 111 {
		t.Errorf("GC = %+v", got)
	}
	pull(t, s, refs[2], nil) // removed images come back
}

// GC in the middle of a pull takes no layer from it.
func TestGCWhilePulling(t *testing.T) {
	f := newRegistry(t)
	img := small(t, "x")
	r, _ := f.push(t, "a/b:1", img)
	layers, _ := img.Layers()
	slow, _ := layers[1].Digest()
	first, _ := layers[0].DiffID()
	release := make(chan struct{})
	f.setFault(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, slow.Hex) {
			<-release
		}
		return false
	})
	s := open(t, Config{MaxBytes: 1})
	done := make(chan error, 1)
	go func() { // ends with the test
		_, err := s.Pull(t.Context(), PullRequest{Ref: r})
		done <- err
	}()
	waitFor(t, func() bool { _, ok := s.layerIntact(first.Hex); return ok })
	if c, err := s.GC(time.Now().Add(time.Hour)); err != nil || c.Freed != 0 {
		t.Errorf("GC = %+v, %v", c, err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Pulls, holds and GC at once; meant for the race detector.
func TestStress(t *testing.T) {
	f := newRegistry(t)
	s := open(t, Config{MaxBytes: 30})
	var refs []ref.Ref
	for i := range 4 {
		r, _ := f.push(t, fmt.Sprintf("a/b%d:1", i), small(t, fmt.Sprint(i)))
		refs = append(refs, r)
	}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 15 {
				id := fmt.Sprintf("%d/%d", w, i)
				img, err := s.Pull(t.Context(), PullRequest{Ref: refs[(w+i)%4], HoldID: id, Progress: func(Progress) {}})
				if err != nil {
					t.Error(err)
					return
				}
				for _, dir := range img.Layers {
					if _, err := os.Stat(dir); err != nil {
						t.Error(err)
					}
				}
				if err := s.Release(id); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		for range 40 {
			if _, err := s.GC(time.Now().Add(time.Hour)); err != nil {
				t.Error(err)
			}
			s.Images()
		}
	})
	wg.Wait()
}

func TestErrorsMarshalWithoutSecrets(t *testing.T) {
	e := &PullError{Kind: Denied, Detail: "x", cause: errors.New("inner")}
	raw, err := json.Marshal(e)
	if err != nil || strings.Contains(string(raw), "inner") {
		t.Errorf("%s, %v", raw, err)
	}
}
