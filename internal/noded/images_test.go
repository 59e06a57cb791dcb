package noded

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/oci/image/imagetest"
	"gbatch/oci/ref"
)

// privateRegistry wants a login, and can be told to send damaged layers or to
// stop in the middle of each until a channel is closed.
type privateRegistry struct {
	host    string
	damaged atomic.Bool
	stalled atomic.Pointer[chan struct{}]
	waiting atomic.Int32 // requests that were stalled
}

func newPrivateRegistry(t *testing.T) *privateRegistry {
	p := &privateRegistry{}
	inner := registry.New(registry.Logger(nullLog()))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, ok := r.BasicAuth(); !ok || user != "alice" || password != secret {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		layer := strings.Contains(r.URL.Path, "/blobs/") && r.Method == http.MethodGet
		if stalled := p.stalled.Load(); stalled != nil && layer && !p.damaged.Load() {
			p.serveHalf(w, r, inner, *stalled)
			return
		}
		if layer && p.damaged.Load() {
			w.Header().Set("Content-Length", "5")
			_, _ = w.Write([]byte("wrong"))
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	p.host = strings.TrimPrefix(srv.URL, "http://")
	img, err := imagetest.Build(imagetest.Options{Busybox: true})
	if err != nil {
		t.Fatal(err)
	}
	name, _, err := ref.Parse(p.host + "/private/box:1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := imagetest.Push(name, img, &ref.Credentials{Username: "alice", Password: secret}); err != nil {
		t.Fatal(err)
	}
	return p
}

// serveHalf sends half of a layer, and the rest when it may.
func (p *privateRegistry) serveHalf(w http.ResponseWriter, r *http.Request, inner http.Handler, stalled <-chan struct{}) {
	whole := httptest.NewRecorder()
	inner.ServeHTTP(whole, r)
	for k, v := range whole.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(whole.Code)
	body := whole.Body.Bytes()
	_, _ = w.Write(body[:len(body)/2])
	_ = http.NewResponseController(w).Flush()
	p.waiting.Add(1)
	select {
	case <-stalled:
		_, _ = w.Write(body[len(body)/2:])
	case <-r.Context().Done():
	}
}

// secret must not be found anywhere but in the daemon's memory.
const secret = "hunter2-never-to-be-seen"

func imageOrder(image string, login *api.Credential) *api.RunOrder {
	return order("echo ran", func(o *api.RunOrder) {
		o.Spec.Request.Docker.Image = image
		o.Registry = login
	})
}

// TestImageFaults: each is told in a sentence as the job's fault, leaves the
// node healthy, and the next job runs.
func TestImageFaults(t *testing.T) {
	needContainers(t)
	reg := newPrivateRegistry(t)
	private := reg.host + "/private/box:1"
	s := newSite(t, nil).start()
	good := &api.Credential{Username: "alice", Password: secret}
	public := strings.TrimSuffix(testReg.image, "/test/busybox:1")
	tests := []struct {
		name   string
		order  *api.RunOrder
		damage bool
		want   string
	}{
		{"no-tag", imageOrder(public+"/test/busybox:2", nil), false, "no such tag"},
		{"no-name", imageOrder(public+"/test/none", nil), false, "no such"},
		{"no-login", imageOrder(private, nil), false, "wants a login"},
		{"wrong-login", imageOrder(private, &api.Credential{Username: "alice", Password: "no"}), false, "login refused"},
		{"down", imageOrder("127.0.0.1:9/x", nil), false, "cannot be reached: connection refused"},
		{"corrupt", imageOrder(private, good), true, "does not match its digest"},
	}
	for i, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			reg.damaged.Store(tc.damage)
			e, _ := s.runNoLog(rankID(i+1), tc.order)
			if e.Reason != job.ImagePull || !strings.Contains(e.Message, tc.want) || e.StartedMS != 0 {
				t.Errorf("got %+v, want IMAGE_PULL with %q", e, tc.want)
			}
			if want := tc.name == "down"; e.Later != want {
				t.Errorf("another try may help: %t, want %t", e.Later, want)
			}
		})
	}
	reg.damaged.Store(false)
	e, out := s.run(rankID(100), imageOrder(private, good))
	if diff := cmp.Diff("ran\n", out); diff != "" || e.Code != 0 {
		t.Errorf("the next job (-want +got):\n%s%+v", diff, e)
	}
	if list := s.unhealthy(); len(list) > 0 {
		t.Errorf("unhealthy: %v", list)
	}
	s.holdsNothing()
	noSecret(t, s.cfg.StateDir)
}

// TestKilledWhilePulling: the credentials are gone with the daemon; the next one
// gets the order again, with them.
func TestKilledWhilePulling(t *testing.T) {
	needContainers(t)
	reg := newPrivateRegistry(t)
	stalled := make(chan struct{})
	reg.stalled.Store(&stalled)
	s := newSite(t, nil)
	p := s.spawn(0)
	id := rankID(1)
	s.want(id, imageOrder(reg.host+"/private/box:1", &api.Credential{Username: "alice", Password: secret}))
	until(t, "the pull to begin", func() bool { return reg.waiting.Load() > 0 })
	s.phase(id, node.PhasePulling)
	p.kill()
	noSecret(t, s.cfg.StateDir)
	p = s.spawn(1)
	close(stalled)
	if e := s.exit(id); e.Code != 0 {
		t.Errorf("exit %+v\n%s", e, p.text())
	}
	if strings.Contains(p.text(), secret) {
		t.Error("the password is in the log")
	}
	s.empty()
	p.term()
	noSecret(t, s.cfg.StateDir)
}

// noSecret looks for the password in files and in processes' arguments.
func noSecret(t *testing.T, dir string) {
	grep := exec.Command("grep", "-rlF", "-f", "-", dir)
	grep.Stdin = strings.NewReader(secret) // not an argument: another test may look at those meanwhile
	out, err := grep.Output()
	if err == nil {
		t.Errorf("the password is in files:\n%s", out)
	}
	procs, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range procs {
		if b, _ := os.ReadFile(p); strings.Contains(string(b), secret) {
			t.Errorf("the password is in the arguments of %s", p)
		}
	}
}

// TestLayerSetAside: a layer is found damaged when a rank has its image and has not mounted it yet: the rank ends as the
// node's fault, so that it is tried again, runs nothing of it, and the next one has the layer anew.
func TestLayerSetAside(t *testing.T) {
	s := newSite(t, nil)
	var once sync.Once
	found, scrubbed := 0, error(nil)
	s.onReach = func(point string) {
		if point != "before container" {
			return
		}
		once.Do(func() {
			layers, err := filepath.Glob(filepath.Join(s.cfg.Images.Dir, "layers", "*", "fs"))
			for _, layer := range layers {
				err = errors.Join(err, os.WriteFile(filepath.Join(layer, "more"), nil, 0o600))
			}
			if scrubbed = err; err == nil {
				found, scrubbed = s.a.images.Scrub(s.a.log, func(int64) error { return nil })
			}
		})
	}
	s.start()
	e, out := s.run(rankID(1), order("echo it ran"))
	if found == 0 || scrubbed != nil {
		t.Fatalf("%d layers were found, %v", found, scrubbed)
	}
	if e.Reason != job.Server || out != "" {
		t.Errorf("it ended with %+v, and wrote %q", e, out)
	}
	if e, out := s.run(rankID(2), order("echo it ran; ls /more")); !strings.HasPrefix(out, "it ran\n") || e.Code != 1 {
		t.Errorf("the next one ended with %+v, and wrote %q", e, out)
	}
	s.holdsNothing()
}
