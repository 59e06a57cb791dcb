package noded

import (
	"context"
	"errors"
	"sync"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/oci/image"
	"gbatch/oci/ref"
)

// prepulls are images that waiting jobs will need here. They are pulled one at a
// time and only while no rank pulls: whoever holds GPUs goes first. Credentials
// are in memory alone, and dropped when the pull is over.
type prepulls struct {
	wake chan struct{}

	mu      sync.Mutex
	wanted  []api.Prepull
	results map[job.Number]node.Prepulled
}

func newPrepulls() *prepulls {
	return &prepulls{wake: make(chan struct{}, 1), results: map[job.Number]node.Prepulled{}}
}

// set takes in what the controller wants.
func (p *prepulls) set(wanted []api.Prepull) {
	p.mu.Lock()
	p.wanted = wanted
	old := p.results
	p.results = map[job.Number]node.Prepulled{}
	for i, w := range wanted {
		if r, ok := old[w.Job]; ok {
			p.results[w.Job] = r
			p.wanted[i].Registry = nil
		}
	}
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// done is what became of those that are wanted.
func (p *prepulls) done() []node.Prepulled {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []node.Prepulled
	for _, w := range p.wanted {
		if r, ok := p.results[w.Job]; ok {
			out = append(out, r)
		}
	}
	return out
}

// next is one that is to be pulled; none: all are done.
func (p *prepulls) next() (api.Prepull, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.wanted {
		if _, ok := p.results[w.Job]; !ok {
			return w, true
		}
	}
	return api.Prepull{}, false
}

func (p *prepulls) wants(n job.Number) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.wanted {
		if w.Job == n {
			return true
		}
	}
	return false
}

func (p *prepulls) finish(r node.Prepulled) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.results[r.Job] = r
	for i := range p.wanted {
		if p.wanted[i].Job == r.Job {
			p.wanted[i].Registry = nil
		}
	}
}

// lookEvery is how often it is looked whether a rank pulls now.
const lookEvery = 250 * time.Millisecond

// prepullLoop pulls what is wanted, until ctx ends.
func (a *Agent) prepullLoop(ctx context.Context) {
	for {
		a.dropPrepulled()
		w, ok := a.prepulls.next()
		if !ok {
			select {
			case <-a.prepulls.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		if !a.pulling() && len(a.health.reasons()) == 0 {
			if a.prepull(ctx, w) {
				continue
			}
		}
		if client.Sleep(ctx, lookEvery) != nil {
			return
		}
	}
}

// pulling says whether a rank waits for its image.
func (a *Agent) pulling() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.ranks {
		if r.status.Phase == node.PhasePulling {
			return true
		}
	}
	return false
}

var errGivenWay = errors.New("a rank pulls, or the image is not wanted any more")

// prepull pulls one image. It gives way, and says false, when a rank begins to
// pull; layers that are here by then stay. A failure is noted and told, and
// not tried again: the job's own start will.
func (a *Agent) prepull(ctx context.Context, w api.Prepull) bool {
	pull, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel(nil)
	watch.Go(func() { // ends with the pull
		for client.Sleep(pull, lookEvery) == nil {
			if a.pulling() || !a.prepulls.wants(w.Job) {
				cancel(errGivenWay)
			}
		}
	})
	began := time.Now()
	err := a.prepullImage(pull, w)
	if context.Cause(pull) != nil {
		return false
	}
	out := node.Prepulled{Job: w.Job, PullMS: max(1, time.Since(began).Milliseconds())}
	if err != nil {
		out.Error = err.Error()
		a.log.Info("image not pulled ahead", "job", uint64(w.Job), "image", w.Image, "error", err)
	} else {
		a.log.Info("image pulled ahead", "job", uint64(w.Job), "image", w.Image, "ms", out.PullMS)
	}
	a.prepulls.finish(out)
	a.tell(newsPull)
	return true
}

func (a *Agent) prepullImage(ctx context.Context, w api.Prepull) error {
	name, creds, err := ref.Parse(w.Image)
	if err != nil {
		return err
	}
	if w.Digest != "" {
		name = name.WithDigest(w.Digest)
	}
	req := image.PullRequest{Ref: name, Credentials: creds}
	if w.Registry != nil {
		req.Credentials = &ref.Credentials{Username: w.Registry.Username, Password: w.Registry.Password}
	}
	_, err = a.images.pull(ctx, aheadID(w.Job), req)
	return err
}

// aheadID stands for a job that has no attempt yet among those who hold images.
func aheadID(n job.Number) job.RankID { return job.RankID{Job: n} }

// dropPrepulled gives up what is not wanted ahead any more. A rank that
// runs on it holds it by itself, and what was just used is left alone for a while.
func (a *Agent) dropPrepulled() {
	a.images.dropIf(func(id job.RankID) bool { return id == aheadID(id.Job) && !a.prepulls.wants(id.Job) })
}
