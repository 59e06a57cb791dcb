package noded

import (
	"strings"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

func (f *fakeController) ahead(list ...api.Prepull) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.prepull = list
	f.version++
	f.touch()
}

// pulledAhead waits for the node's word on a job's image.
func (s *site) pulledAhead(n job.Number) (out node.Prepulled) {
	s.t.Helper()
	until(s.t, "an image to be pulled ahead", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, p := range s.last.Prepulled {
			if p.Job == n {
				out = p
				return true
			}
		}
		return false
	})
	return out
}

// TestPrepull: an image is pulled ahead with its job's credentials, gives way to
// ranks that pull, stays while it is wanted, and spares the job the wait. A failure
// is told, once, and leaves the node healthy.
func TestPrepull(t *testing.T) {
	needContainers(t)
	reg := newPrivateRegistry(t)
	s := newSite(t, nil)
	s.cfg.Images.MaxSize = 1 // nothing is kept that is not held
	s.start()
	private := reg.host + "/private/box:1"
	login := &api.Credential{Username: "alice", Password: secret}
	missing := strings.TrimSuffix(testReg.image, "/test/busybox:1") + "/test/none:1"

	stalled := make(chan struct{})
	reg.stalled.Store(&stalled)
	s.ahead(api.Prepull{Job: 7, Image: private, Registry: login}, api.Prepull{Job: 8, Image: missing})
	until(t, "the pull to begin", func() bool { return reg.waiting.Load() > 0 })
	if e, out := s.run(rankID(1), order("echo ran")); e.Code != 0 || out != "ran\n" {
		t.Errorf("a rank beside it: %+v, %q", e, out)
	}
	close(stalled)
	if p := s.pulledAhead(7); p.Error != "" || p.PullMS == 0 {
		t.Errorf("pulled ahead: %+v", p)
	}
	if p := s.pulledAhead(8); !strings.Contains(p.Error, "no such") {
		t.Errorf("a missing image: %+v", p)
	}
	noSecret(t, s.cfg.StateDir)
	if list := s.unhealthy(); len(list) > 0 {
		t.Errorf("unhealthy: %v", list)
	}

	later := time.Now().Add(time.Hour)
	if done, err := s.a.images.Collect(later); err != nil || len(done.Images) != 1 {
		t.Errorf("collected %+v, %v: want the image of the rank that has ended", done, err)
	}
	served := reg.waiting.Load()
	reg.stalled.Store(new(chan struct{})) // a layer that is asked for now never comes
	e, out := s.run(rankID(7), imageOrder(private, login))
	if e.Code != 0 || out != "ran\n" || reg.waiting.Load() != served {
		t.Errorf("the job itself: %+v, %q, %d layers pulled again", e, out, reg.waiting.Load()-served)
	}
	s.holdsNothing()
	s.ahead()
	until(t, "the image to be given up", func() bool {
		done, err := s.a.images.Collect(later)
		return err == nil && len(done.Images) == 1
	})
	s.empty()
}

// TestPrepullUnwanted: a pull that nobody wants any more ends, and the next begins.
func TestPrepullUnwanted(t *testing.T) {
	needContainers(t)
	reg := newPrivateRegistry(t)
	s := newSite(t, nil).start()
	stalled := make(chan struct{})
	defer close(stalled)
	reg.stalled.Store(&stalled)
	s.ahead(api.Prepull{Job: 7, Image: reg.host + "/private/box:1", Registry: &api.Credential{Username: "alice", Password: secret}})
	until(t, "the pull to begin", func() bool { return reg.waiting.Load() > 0 })
	s.ahead(api.Prepull{Job: 9, Image: testReg.image})
	if p := s.pulledAhead(9); p.Error != "" {
		t.Errorf("the next: %+v", p)
	}
	s.empty()
}
