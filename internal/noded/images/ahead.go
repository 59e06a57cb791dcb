package images

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/oci/image"
	"gbatch/oci/image/share"
	"gbatch/oci/ref"
)

// Ahead has the images that waiting jobs will need here. They are pulled one at a
// time and only while no rank pulls: whoever holds GPUs goes first. Credentials
// are in memory alone, and dropped when the pull is over.
type Ahead struct {
	AheadNode
	images *Holds
	wake   chan struct{}

	mu      sync.Mutex
	wanted  []api.Prepull
	results map[job.Number]node.Prepulled
}

// AheadNode is what pulling ahead needs to know of the node.
type AheadNode struct {
	Log     *slog.Logger
	Pulling func() bool // a rank pulls now
	Healthy func() bool
	Tell    func() // that something has come of a pull
	Peers   func(*api.ImagePeers) []share.Peer
}

// NewAhead makes the list of what to pull ahead; Run works on it.
func NewAhead(images *Holds, n AheadNode) *Ahead {
	return &Ahead{AheadNode: n, images: images, wake: make(chan struct{}, 1), results: map[job.Number]node.Prepulled{}}
}

// Want takes in what the controller wants.
func (p *Ahead) Want(wanted []api.Prepull) {
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

// Results is what became of those that are wanted.
func (p *Ahead) Results() []node.Prepulled {
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
func (p *Ahead) next() (api.Prepull, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.wanted {
		if _, ok := p.results[w.Job]; !ok {
			return w, true
		}
	}
	return api.Prepull{}, false
}

func (p *Ahead) wants(n job.Number) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.wanted {
		if w.Job == n {
			return true
		}
	}
	return false
}

func (p *Ahead) finish(r node.Prepulled) {
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

// Run pulls what is wanted, until ctx ends.
func (p *Ahead) Run(ctx context.Context) {
	for {
		p.dropUnwanted()
		w, ok := p.next()
		if !ok {
			select {
			case <-p.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		if !p.Pulling() && p.Healthy() {
			if p.pull(ctx, w) {
				continue
			}
		}
		if client.Sleep(ctx, lookEvery) != nil {
			return
		}
	}
}

var errGivenWay = errors.New("a rank pulls, or the image is not wanted any more")

// pull pulls one image. It gives way, and says false, when a rank begins to
// pull; layers that are here by then stay. A failure is noted and told, and
// not tried again: the job's own start will.
func (p *Ahead) pull(ctx context.Context, w api.Prepull) bool {
	pull, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel(nil)
	watch.Go(func() { // ends with the pull
		for client.Sleep(pull, lookEvery) == nil {
			if p.Pulling() || !p.wants(w.Job) {
				cancel(errGivenWay)
			}
		}
	})
	began := time.Now()
	err := p.pullImage(pull, w)
	if context.Cause(pull) != nil {
		return false
	}
	out := node.Prepulled{Job: w.Job, PullMS: max(1, time.Since(began).Milliseconds())}
	if err != nil {
		out.Error = err.Error()
		p.Log.Info("image not pulled ahead", "job", uint64(w.Job), "image", w.Image, "error", err)
	} else {
		p.Log.Info("image pulled ahead", "job", uint64(w.Job), "image", w.Image, "ms", out.PullMS)
	}
	p.finish(out)
	p.Tell()
	return true
}

func (p *Ahead) pullImage(ctx context.Context, w api.Prepull) error {
	name, creds, err := ref.Parse(w.Image)
	if err != nil {
		return err
	}
	if w.Digest != "" {
		name = name.WithDigest(w.Digest)
	}
	req := image.PullRequest{Ref: name, Credentials: creds, Peers: p.Peers(w.Peers)}
	if w.Registry != nil {
		req.Credentials = &ref.Credentials{Username: w.Registry.Username, Password: w.Registry.Password}
	}
	_, err = p.images.Pull(ctx, aheadID(w.Job), req)
	return err
}

// aheadID stands for a job that has no attempt yet among those who hold images.
func aheadID(n job.Number) job.RankID { return job.RankID{Job: n} }

// dropUnwanted gives up what is not wanted ahead any more. A rank that
// runs on it holds it by itself, and what was just used is left alone for a while.
func (p *Ahead) dropUnwanted() {
	p.images.dropIf(func(id job.RankID) bool { return id == aheadID(id.Job) && !p.wants(id.Job) })
}
