package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"gbatch/internal/hosttest"
)

// TestSharedLayers: three nodes that run one private image get its layers from the registry once; the
// registry is asked by each whether its user may have them.
func TestSharedLayers(t *testing.T) {
	listen, err := hosttest.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, siteOptions{nodes: 3, listen: listen,
		nodeConfig: "address: 127.0.0.1\njoinTokenFile: DIR/join.token\nimages: {hosts: [127.0.0.1], peers: {listen: '127.0.0.1:0'}}\n",
		nodesDial: func(_ int, controller string) string {
			dir := filepath.Dir(strings.TrimPrefix(controller, "unix://"))
			r := execute(exec.Command(filepath.Join(bin, "gctld"), "init", "--config", dir+"/gctld.yaml"))
			return "'" + regexp.MustCompile(`https://[^']+`).FindString(r.out) + "'"
		},
		ready: func(s *site) {
			if err := os.WriteFile(s.dir+"/join.token", []byte(s.must("gadm", "node-token", "create", "--uses", "3")), 0o600); err != nil {
				t.Fatal(err)
			}
		}})
	to, err := url.Parse("http://" + private.host)
	if err != nil {
		t.Fatal(err)
	}
	var layers, asked atomic.Int64
	forward := httputil.NewSingleHostReverseProxy(to)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _, with := r.BasicAuth()
		switch {
		case !with || !strings.Contains(r.URL.Path, "/blobs/"):
		case r.Method == http.MethodGet:
			layers.Add(1)
		case r.Method == http.MethodHead:
			asked.Add(1)
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	image := login.Username + ":" + login.Password + "@" + strings.TrimPrefix(front.URL, "http://") + "/secret/box:1"
	for i := range 3 {
		s.waitRunning(s.submit(doc{name: fmt.Sprint("on ", i), cpus: 8, image: image, command: idle, scheduling: map[string]any{"maxDuration": "1 hour"}}))
	}
	if sent, questions := layers.Load(), asked.Load(); sent != 3+1 || questions != 2 { // three configs
		t.Errorf("the registry sent %d blobs, and was asked %d times who may have a layer", sent, questions)
	}
	refused := s.submit(doc{name: "refused", cpus: 8, image: strings.Replace(image, login.Password, "wrong", 1), command: idle})
	for i := range 3 {
		s.must("gcancel", fmt.Sprint(i+1))
	}
	if d := s.wait(refused); d.Reason != "IMAGE_PULL" {
		t.Errorf("with a wrong password:\n%s", describe(d))
	}
}
