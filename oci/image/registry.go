package image

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"gbatch/oci/image/bounds"
	"gbatch/oci/ref"
)

// registrySource reads from the mirrors of a registry and then from itself.
// It serves one pull: connections are kept by the transports, logins for loginAge.
type registrySource struct {
	stall time.Duration
	ref   ref.Ref
	hosts []*host // in the order in which they are tried; the last is the registry
}

// host is one registry or mirror, with a login.
type host struct {
	name   string
	repo   name.Repository
	puller *remote.Puller
	login  string // whose login it is, for messages; empty: none that we know of
	mirror bool
	bad    atomic.Bool // a mirror that failed is not asked again in this pull
}

// registrySource sets up a pull.
func (w *worker) registrySource(s *session) (*registrySource, error) {
	hosts, err := w.hosts(s)
	return &registrySource{stall: s.stall(), ref: s.Ref, hosts: hosts}, err
}

// loginAge is how long pulls of one repository, one after the other, go on with what its registry said of
// how to log in, and with the token that it gave. Each still asks for the image itself.
const loginAge = 10 * time.Second

// known are the hosts of the last session.
type known struct {
	key   [sha256.Size]byte // of all that they were made of
	until time.Time
	hosts []*host
}

// hosts are those of a session: those of the last one, if it was the same but for the tag.
func (w *worker) hosts(s *session) (list []*host, err error) {
	of, err := json.Marshal([]any{s.Hosts, s.Insecure, s.Stall, s.Parallel})
	if err != nil {
		return nil, wrap(Internal, err, "%v", err)
	}
	key := sha256.Sum256(of)
	w.mu.Lock()
	last := w.last
	w.mu.Unlock()
	if last.key == key && time.Now().Before(last.until) {
		for _, h := range last.hosts {
			h.bad.Store(false)
		}
		return last.hosts, nil
	}
	for _, l := range s.Hosts {
		h, err := w.newHost(s, l)
		if err != nil {
			return nil, err
		}
		list = append(list, h)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = known{key, time.Now().Add(loginAge), list}
	return list, nil
}

// forget has the next pull find all out again: something was not as it should be.
func (w *worker) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = known{}
}

func (w *worker) newHost(s *session, l hostLogin) (*host, error) {
	var opts []name.Option
	if plainHTTP(l.Name, s.Insecure) {
		opts = append(opts, name.Insecure)
	}
	reg, err := name.NewRegistry(l.Name, opts...)
	if err != nil {
		return nil, wrap(BadReference, err, "%q is no registry", l.Name)
	}
	rt, err := w.transport(s, l)
	if err != nil {
		return nil, wrap(Internal, err, "%v", err)
	}
	h := &host{name: l.Name, repo: reg.Repo(l.Repository), login: l.User, mirror: l.Mirror}
	auth := authn.Anonymous
	if l.Login != (credentials{}) {
		auth = authn.FromConfig(authn.AuthConfig(l.Login))
	}
	h.puller, err = remote.NewPuller(
		remote.WithAuth(auth),
		remote.WithTransport(rt),
		remote.WithUserAgent("gbatch"),
		remote.WithJobs(s.Parallel),
		// Retries are the store's: cancellable, counted and told to the user.
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}),
		remote.WithRetryStatusCodes(),
	)
	if err != nil {
		return nil, wrap(Internal, err, "%v", err)
	}
	return h, nil
}

// each asks the hosts in turn until one answers well. The error is that of
// the registry itself: it knows best.
func (src *registrySource) each(ask func(*host) error) error {
	var last error
	for _, h := range src.hosts {
		if h.bad.Load() {
			continue
		}
		err := ask(h)
		if err == nil {
			return nil
		}
		last = classifyRemote(err, h.name, h.login)
		if h.mirror {
			h.bad.Store(true)
		}
	}
	return last
}

func (src *registrySource) resolve(ctx context.Context) (digest v1.Hash, mirror bool, err error) {
	err = src.each(func(h *host) error {
		var target name.Reference = h.repo.Tag(src.ref.Tag)
		if src.ref.Digest != "" {
			target = h.repo.Digest(src.ref.Digest)
		}
		d, err := h.puller.Head(ctx, target)
		if err != nil && mayLackHead(err) {
			var full *remote.Descriptor
			if full, err = h.puller.Get(ctx, target); err == nil {
				d = &full.Descriptor
			}
		}
		if err != nil {
			return src.describe(classifyRemote(err, h.name, h.login))
		}
		digest, mirror = d.Digest, h.mirror
		return nil
	})
	return digest, mirror, err
}

// mayLackHead is true where a registry answered, but not as it should: then a
// GET may still work. A clear refusal or no answer is final.
func mayLackHead(err error) bool {
	e := classifyRemote(err, "", "")
	return e.Kind == Unreachable && !e.Temporary || e.Kind == Corrupt
}

// describe says what was not found.
func (src *registrySource) describe(e *PullError) *PullError {
	if e.Kind == NotFound {
		what := "tag"
		if src.ref.Digest != "" {
			what = "digest"
		}
		e.Detail = fmt.Sprintf("no such %s at registry %s, or no such repository", what, src.ref.Registry)
	}
	return e
}

func (src *registrySource) manifest(ctx context.Context, digest v1.Hash) (raw []byte, err error) {
	err = src.each(func(h *host) error {
		d, err := h.puller.Get(ctx, h.repo.Digest(digest.String()))
		if err == nil {
			raw = d.Manifest
		}
		return err
	})
	if len(raw) > maxBlob {
		return nil, fail(Unsupported, "has a manifest of more than %d bytes", maxBlob)
	}
	return raw, err
}

func (src *registrySource) has(ctx context.Context, d v1.Descriptor) (has, mirror bool, err error) {
	err = src.each(func(h *host) error {
		l, err := h.puller.Layer(ctx, h.repo.Digest(d.Digest.String()))
		if err != nil {
			return err
		}
		has, err = partial.Exists(l)
		if err == nil && !has {
			err = fail(NotFound, "no such blob at registry %s", h.name)
		}
		mirror = h.mirror
		return err
	})
	return has, mirror, err
}

func (src *registrySource) blob(ctx context.Context, d v1.Descriptor) (rc io.ReadCloser, mirror bool, err error) {
	err = src.each(func(h *host) error {
		// The request's context must outlive this call: the body is read later.
		ctx, cancel := context.WithCancelCause(context.WithValue(ctx, bulk{}, true))
		body, err := h.open(ctx, d.Digest)
		if err != nil {
			cancel(err)
			return err
		}
		rc = &hostReader{host: h, ReadCloser: &bounds.Stall{ReadCloser: body, Limit: src.stall, Least: bounds.MinProgress, Stalled: ctx, Cancel: cancel}}
		mirror = h.mirror
		return nil
	})
	return rc, mirror, err
}

func (h *host) open(ctx context.Context, digest v1.Hash) (io.ReadCloser, error) {
	l, err := h.puller.Layer(ctx, h.repo.Digest(digest.String()))
	if err != nil {
		return nil, err
	}
	return l.Compressed() // verifies the digest at the end
}

// hostReader classifies errors while reading. A mirror that breaks off or
// sends wrong bytes is put aside, and the next try goes to another host.
type hostReader struct {
	io.ReadCloser
	host *host
}

func (r *hostReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err == nil || err == io.EOF {
		return n, err
	}
	e := classifyRemote(err, r.host.name, r.host.login)
	if r.host.mirror {
		r.host.bad.Store(true)
		e.Temporary = true
	}
	return n, e
}
