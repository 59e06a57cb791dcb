package image

import (
	"context"
	"errors"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"gbatch/oci/ref"
)

var errPullTimeout = errors.New("pull timeout")

// Pull returns the image, from the store if it is there. A tag is looked up at
// each call. A pinned digest that these credentials have pulled before needs
// no network. Callers who ask for the same at the same time share the work,
// and none is harmed when another gives up.
//
// Errors are *PullError, or the error of ctx when that ends.
func (s *Store) Pull(ctx context.Context, req PullRequest) (*Image, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.config.PullTimeout, errPullTimeout)
	defer cancel()
	img, err := s.pullShared(ctx, req)
	for try := 0; err == nil && req.HoldID != ""; try++ {
		if err = s.Hold(req.HoldID, img.Digest); !errors.Is(err, errAbsent) || try == maxRepulls {
			break
		}
		img, err = s.pullShared(ctx, req) // GC came in between
	}
	if err != nil {
		return nil, s.errorFor(req.Ref, err)
	}
	mine := *img
	mine.Ref = req.Ref.WithDigest(img.Digest)
	return &mine, nil
}

func (s *Store) pullShared(ctx context.Context, req PullRequest) (*Image, error) {
	if err := checkRef(req.Ref); err != nil {
		return nil, err
	}
	identity := s.identify(req.Credentials)
	if img, err := s.local(req.Ref, identity); img != nil || err != nil {
		return img, err
	}
	key := req.Ref.String() + " " + identity
	if digest := s.saidSince(key, req.AskedSince); digest != "" {
		if img, err := s.local(req.Ref.WithDigest(digest), identity); img != nil || err != nil {
			return img, err
		}
	}
	img, _, err := s.pulls.do(ctx, key, req.Progress, func(ctx context.Context, h *hub) (*Image, error) {
		return s.pull(ctx, req, h)
	})
	return img, err
}

// local serves a pinned digest without asking anyone.
func (s *Store) local(r ref.Ref, identity string) (*Image, error) {
	if r.Digest == "" {
		return nil, nil
	}
	rec, img := s.image(r.Digest)
	if img == nil || !rec.allows(r, identity) {
		return nil, nil
	}
	return s.use(img, r, identity)
}

// use notes the use of an image that is there. It returns nil if GC was
// quicker: then the image must be pulled.
func (s *Store) use(img *Image, r ref.Ref, identity string) (*Image, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rec := s.images[img.Digest]
	if rec == nil {
		return nil, nil
	}
	return img, s.useLocked(rec, r, identity, false)
}

func (s *Store) resolve(ctx context.Context, r ref.Ref, creds *ref.Credentials) (digest v1.Hash, err error) {
	if err := checkRef(r); err != nil {
		return digest, err
	}
	o, err := s.origin(r, creds)
	if err != nil {
		return digest, err
	}
	defer o.release()
	err = s.retry(ctx, 0, func() error {
		digest, _, err = o.resolve(ctx)
		return err
	})
	return digest, err
}

// pull is the shared work of callers with the same reference and credentials; what else the first
// of them asked for counts.
func (s *Store) pull(ctx context.Context, req PullRequest, h *hub) (*Image, error) {
	r := req.Ref
	h.publish(Progress{Phase: PhaseResolve})
	if err := s.layout.Complete(); err != nil {
		return nil, classifyLocal(err)
	}
	o, err := s.origin(r, req.Credentials)
	if err != nil {
		return nil, err
	}
	defer o.release()
	defer s.spool.Pull(r.Name())()
	o.peers.Set(req.Peers, s.config.Peers.Wait)
	var digest v1.Hash
	var identity string
	asked := s.config.Now()
	err = s.retry(ctx, 0, func() error {
		digest, identity, err = o.resolve(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.noteSaid(r.String()+" "+s.identify(req.Credentials), said{asked, digest.String()})
	h.found(digest.String())
	// Only where this repository has served the image may it be believed when
	// it says that it has it.
	if rec, img := s.image(digest.String()); img != nil && rec.served(r) {
		if img, err := s.use(img, r, identity); img != nil || err != nil {
			return img, err
		}
	}
	var p *plan
	err = s.retry(ctx, 0, func() error {
		p, err = readPlan(ctx, o, digest, s.config.Platform)
		return err
	})
	if err != nil {
		return nil, err
	}
	defer s.pin(p.layers)()
	if err := s.pullLayers(ctx, o, p, h); err != nil {
		return nil, err
	}
	layers, err := s.withDirs(p.layers)
	if err != nil {
		return nil, err
	}
	if err := s.saveImage(p, layers, r, identity); err != nil {
		return nil, err
	}
	s.awaitSynced(digest.String())
	if _, img := s.image(digest.String()); img != nil {
		return img, nil
	}
	return nil, fail(Internal, "the node's image store lost it again; look at the disk")
}

// checkRef refuses references that did not come from ref.Parse.
func checkRef(r ref.Ref) error {
	again, _, err := ref.Parse(r.String())
	if err != nil {
		return wrap(BadReference, err, "%v", err)
	}
	if again != r {
		return fail(BadReference, "is not in canonical form")
	}
	return nil
}

// pin keeps GC from layers that a pull counts on.
func (s *Store) pin(layers []layer) (unpin func()) {
	add := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, l := range layers {
			if s.pins[l.diffID.Hex] += n; s.pins[l.diffID.Hex] == 0 {
				delete(s.pins, l.diffID.Hex)
			}
		}
	}
	add(1)
	return func() { add(-1) }
}

// retry runs try until it succeeds, fails for good or the retries are used up. One
// try that hears nothing for StallTimeout is enough, as others wait for what this pull's rank
// holds; stalls is how many more there may be, where a new connection may help.
func (s *Store) retry(ctx context.Context, stalls int, try func() error) error {
	wait := s.config.Backoff
	for n := 0; ; n++ {
		began := s.config.Now()
		err := try()
		e, ok := errors.AsType[*PullError](err)
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx) // what failed, failed because of that
		}
		if s.config.Now().Sub(began) >= s.config.StallTimeout {
			stalls--
		}
		if !ok || !e.Temporary || n >= s.config.Retries || stalls < 0 {
			return err
		}
		if s.config.Sleep(ctx, wait) != nil {
			return context.Cause(ctx)
		}
		wait = min(2*wait, maxBackoff)
	}
}

// errorFor gives every error its final form.
func (s *Store) errorFor(r ref.Ref, err error) error {
	if errors.Is(err, errPullTimeout) {
		e := wrap(Timeout, err, "not pulled within %v", s.config.PullTimeout)
		e.Ref, e.Temporary = r, true
		return e
	}
	e, ok := errors.AsType[*PullError](err)
	if !ok && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return fmt.Errorf("pull image %s: %w", r.Familiar(), err)
	}
	if !ok {
		e = classifyLocal(err)
	}
	mine := *e
	mine.Ref = r
	return &mine
}
