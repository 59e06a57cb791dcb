package image

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/time/rate"

	"gbatch/oci/image/imagetest"
	"gbatch/oci/image/share"
	"gbatch/oci/ref"
)

// near is another store of this process as a Peer.
type near struct{ s *Store }

func (n near) Layer(ctx context.Context, image, digest string, wait time.Duration) (io.ReadCloser, error) {
	patient, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	r, _, err := n.s.Shared(patient, ctx, image, digest)
	return r, err
}

// sharing are stores that keep layers for each other.
func sharing(t testing.TB, n int, p Peers) (stores []*Store) {
	p.Keep = 1 << 30
	for i := range n {
		stores = append(stores, open(t, Config{Dir: filepath.Join(t.TempDir(), strconv.Itoa(i)), Peers: p}))
	}
	return stores
}

// noisy is an image of layers that do not compress.
func noisy(t testing.TB, layers, size int) v1.Image {
	from := rand.NewChaCha8([32]byte{1})
	var o imagetest.Options
	for i := range layers {
		body := make([]byte, size)
		_, _ = from.Read(body)
		o.Layers = append(o.Layers, []imagetest.File{{Name: "layer" + strconv.Itoa(i), Body: body}})
	}
	return build(t, o)
}

// counted is a registry that counts the bytes that it sends.
func counted(t testing.TB, f *fakeRegistry) (host string, sent *atomic.Int64) {
	sent = new(atomic.Int64)
	inner := f.handler()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(countingWriter{w, sent, f}, r)
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://"), sent
}

type countingWriter struct {
	http.ResponseWriter
	n *atomic.Int64
	f *fakeRegistry
}

func (w countingWriter) Write(p []byte) (int, error) {
	w.n.Add(int64(len(p)))
	if w.f.pace != nil {
		_ = w.f.pace.WaitN(context.Background(), len(p))
	}
	return w.ResponseWriter.Write(p)
}

// parents are the nodes that the i-th of many is told.
func parents(stores []*Store, i int) (list []share.Peer) {
	if i == 0 {
		return nil
	}
	return []share.Peer{near{stores[(i-1)/4]}, near{stores[(i-1)/2]}, near{stores[i-1]}}
}

// TestManyNodesOneCopy: 64 nodes that begin to pull at the same time cost the registry one copy,
// and all have the image.
func TestManyNodesOneCopy(t *testing.T) {
	const nodes = 64
	f := newRegistry(t)
	host, sent := counted(t, f)
	img := noisy(t, 3, 2<<20)
	r := parse(t, host+"/a/b:1")
	if _, err := imagetest.Push(r, img, nil); err != nil {
		t.Fatal(err)
	}
	stores := sharing(t, nodes, Peers{Wait: time.Hour, Stall: time.Hour}) // however busy the machine is
	sent.Store(0)
	var all sync.WaitGroup
	for i, s := range stores {
		all.Go(func() {
			got, err := s.Pull(t.Context(), PullRequest{Ref: r, Peers: parents(stores, i)})
			if err != nil {
				t.Errorf("node %d: %v", i, err)
			} else if len(got.Layers) != 3 {
				t.Errorf("node %d has %d layers", i, len(got.Layers))
			}
		})
	}
	all.Wait()
	copies := float64(sent.Load()) / float64(sizeOf(t, img))
	t.Logf("%d nodes cost the registry %.3f copies", nodes, copies)
	if copies > 1.1 {
		t.Errorf("%d nodes cost the registry %.3f copies", nodes, copies)
	}
}

// BenchmarkManyNodes is 64 nodes that pull one image at the same time from a registry that sends
// 100 MiB a second, without each other and with.
func BenchmarkManyNodes(b *testing.B) {
	for _, with := range []bool{false, true} {
		b.Run(map[bool]string{false: "registry", true: "peers"}[with], func(b *testing.B) {
			f := newRegistry(b)
			host, sent := counted(b, f)
			img := noisy(b, 4, 8<<20)
			r := parse(b, host+"/a/b:1")
			if _, err := imagetest.Push(r, img, nil); err != nil {
				b.Fatal(err)
			}
			f.pace = rate.NewLimiter(100<<20, 1<<20)
			for b.Loop() {
				b.StopTimer()
				stores := sharing(b, 64, Peers{Wait: time.Hour, Stall: time.Hour})
				sent.Store(0)
				b.StartTimer()
				var all sync.WaitGroup
				for i, s := range stores {
					req := PullRequest{Ref: r}
					if with {
						req.Peers = parents(stores, i)
					}
					all.Go(func() {
						if _, err := s.Pull(b.Context(), req); err != nil {
							b.Error(err)
						}
					})
				}
				all.Wait()
				b.StopTimer()
				for _, s := range stores {
					s.Close()
				}
				b.ReportMetric(float64(sent.Load())/float64(sizeOf(b, img)), "copies")
				b.StartTimer()
			}
		})
	}
}

func sizeOf(t testing.TB, img v1.Image) (n int64) {
	m, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range m.Layers {
		n += l.Size
	}
	return n
}

// bad is a node that fails in one way.
type bad func(ctx context.Context, good io.ReadCloser) (io.ReadCloser, error)

type badPeer struct {
	of  share.Peer
	how bad
	n   *atomic.Int64 // times it was asked
}

func (b badPeer) Layer(ctx context.Context, image, digest string, wait time.Duration) (io.ReadCloser, error) {
	b.n.Add(1)
	good, err := b.of.Layer(ctx, image, digest, wait)
	if err != nil {
		return nil, err
	}
	return b.how(ctx, good)
}

// lying flips a byte in the middle.
type lying struct {
	io.ReadCloser
	at int
}

func (l *lying) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	if l.at >= 0 && l.at < n {
		p[l.at] ^= 1
	}
	l.at -= n
	return n, err
}

// silent sends nothing more after some bytes, until it is given up.
type silent struct {
	io.ReadCloser
	ctx context.Context
	n   int64
}

func (s *silent) Read(p []byte) (int, error) {
	if s.n <= 0 {
		<-s.ctx.Done()
		return 0, s.ctx.Err()
	}
	n, err := s.ReadCloser.Read(p[:min(int64(len(p)), s.n)])
	s.n -= int64(n)
	return n, err
}

// TestBadPeers: whatever another node does, the image is had, whole, and from the next one that does better.
func TestBadPeers(t *testing.T) {
	f := newRegistry(t)
	r, _ := f.push(t, "a/b:1", noisy(t, 2, 1<<20))
	has := sharing(t, 1, Peers{})[0]
	pull(t, has, r, nil)
	for name, how := range map[string]bad{
		"lies":              func(_ context.Context, g io.ReadCloser) (io.ReadCloser, error) { return &lying{g, 1 << 19}, nil },
		"lies at the start": func(_ context.Context, g io.ReadCloser) (io.ReadCloser, error) { return &lying{g, 0}, nil },
		"stalls": func(ctx context.Context, g io.ReadCloser) (io.ReadCloser, error) {
			return &silent{g, ctx, 1 << 18}, nil
		},
		"dies": func(_ context.Context, g io.ReadCloser) (io.ReadCloser, error) {
			return struct {
				io.Reader
				io.Closer
			}{io.LimitReader(g, 1<<19), g}, nil
		},
		"sends too much": func(_ context.Context, g io.ReadCloser) (io.ReadCloser, error) {
			return struct {
				io.Reader
				io.Closer
			}{io.MultiReader(g, neverEnding{}), g}, nil
		},
		"is full": func(_ context.Context, g io.ReadCloser) (io.ReadCloser, error) { g.Close(); return nil, share.ErrLacks },
		"cannot":  func(_ context.Context, g io.ReadCloser) (io.ReadCloser, error) { g.Close(); return nil, share.ErrNever },
		"is not there": func(_ context.Context, g io.ReadCloser) (io.ReadCloser, error) {
			g.Close()
			return nil, errors.New("refused")
		},
	} {
		for _, second := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", then another"}[second], func(t *testing.T) {
				f.reset()
				var asked atomic.Int64
				list := []share.Peer{badPeer{near{has}, how, &asked}}
				if second {
					list = append(list, near{has})
				}
				p := Peers{Stall: time.Hour, Wait: 500 * time.Millisecond}
				if name == "stalls" {
					p.Stall = 200 * time.Millisecond
				}
				s := sharing(t, 1, p)[0]
				img, err := s.Pull(t.Context(), PullRequest{Ref: r, Peers: list})
				if err != nil {
					t.Fatal(err)
				}
				if len(img.Layers) != 2 || asked.Load() == 0 {
					t.Errorf("%d layers, asked %d times", len(img.Layers), asked.Load())
				}
				if damaged, err := s.Verify(func(int64) error { return nil }); err != nil || len(damaged) > 0 {
					t.Errorf("damaged: %v, %v", damaged, err)
				}
				if layers := f.count("GET", "/blobs/") - 1; !second && layers != 2 || second && name != "stalls" && layers != 0 {
					t.Errorf("the registry sent %d layers: %v", layers, f.seen)
				}
			})
		}
	}
}

type neverEnding struct{}

func (neverEnding) Read(p []byte) (int, error) { return len(p), nil }

// TestPeersGiveNoRights: who may not read an image at the registry does not get it from nodes that
// have all of it, nor by another repository whose registry says that it has it.
func TestPeersGiveNoRights(t *testing.T) {
	f := newRegistry(t)
	r, digest := f.push(t, "team/b:1", small(t, "x"))
	f.private()
	stores := sharing(t, 2, Peers{})
	pull(t, stores[0], r, login("alice"))
	list := []share.Peer{near{stores[0]}}
	for _, r := range []ref.Ref{r, r.WithDigest(digest)} {
		_, err := stores[1].Pull(t.Context(), PullRequest{Ref: r, Credentials: login("mallory"), Peers: list})
		wantError(t, err, Denied, "login refused")
	}
	// A registry of mallory's own has manifest and config, and says that it has the layers.
	own := newRegistry(t)
	mine, _ := own.push(t, "team/b:1", small(t, "x"))
	own.setFault(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/") || own.count("GET", "/blobs/") == 1 {
			return false // the first is the config
		}
		w.WriteHeader(http.StatusNotFound)
		return true
	})
	_, err := stores[1].Pull(t.Context(), PullRequest{Ref: mine, Credentials: login("mallory"), Peers: list})
	wantError(t, err, NotFound, "layer")
	f.reset()
	if _, err := stores[1].Pull(t.Context(), PullRequest{Ref: r, Credentials: login("bob"), Peers: list}); err != nil {
		t.Fatal(err)
	}
	if n := f.count("GET", "/blobs/") - 1; n != 0 {
		t.Errorf("the registry sent %d layers", n)
	}
	if n := f.count("HEAD", "/blobs/"); n != 2 {
		t.Errorf("it was asked %d times whether bob may have them", n)
	}
}
