package image

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"gbatch/oci/ref"
)

// registrySource reads from the mirrors of a registry and then from itself.
// It serves one pull: connections are kept by the transports, logins are not.
type registrySource struct {
	config *Config
	ref    ref.Ref
	hosts  []*host // in the order in which they are tried; the last is the registry
}

// host is one registry or mirror, with a login.
type host struct {
	name     string
	repo     name.Repository
	puller   *remote.Puller
	login    string // whose login it is, for messages; empty: none that we know of
	identity string
	mirror   bool
	bad      atomic.Bool // a mirror that failed is not asked again in this pull
}

// registrySource sets up a pull. Users' credentials go to the registry that
// they were written for and to no other host.
func (s *Store) registrySource(r ref.Ref, creds *ref.Credentials) (*registrySource, error) {
	src := &registrySource{config: &s.config, ref: r}
	for _, mirror := range s.config.Mirrors[r.Registry] {
		at, prefix, _ := strings.Cut(mirror, "/")
		h, err := s.newHost(at, strings.TrimPrefix(prefix+"/"+r.Repository, "/"), nil)
		if err != nil {
			return nil, err
		}
		h.mirror = true
		src.hosts = append(src.hosts, h)
	}
	h, err := s.newHost(r.Registry, r.Repository, creds)
	if err != nil {
		return nil, err
	}
	src.hosts = append(src.hosts, h)
	return src, nil
}

func (s *Store) newHost(registry, repository string, creds *ref.Credentials) (*host, error) {
	var opts []name.Option
	if s.config.plainHTTP(registry) {
		opts = append(opts, name.Insecure)
	}
	reg, err := name.NewRegistry(registry, opts...)
	if err != nil {
		return nil, wrap(BadReference, err, "%q is no registry", registry)
	}
	rt, err := s.transport(registry)
	if err != nil {
		return nil, wrap(Internal, err, "%v", err)
	}
	h := &host{name: registry, repo: reg.Repo(repository), identity: s.identify(creds)}
	auth := remote.WithAuthFromKeychain(nodeKeychain{s.config.DockerConfigDir})
	if creds != nil {
		h.login = creds.Username
		auth = remote.WithAuth(basicAuth(creds))
	}
	h.puller, err = remote.NewPuller(auth,
		remote.WithTransport(rt),
		remote.WithUserAgent("gbatch"),
		remote.WithJobs(s.config.Parallel),
		// Retries are ours: cancellable, counted and told to the user.
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

func (src *registrySource) resolve(ctx context.Context) (digest v1.Hash, identity string, err error) {
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
		digest, identity = d.Digest, h.identity
		return nil
	})
	return digest, identity, err
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

func (src *registrySource) blob(ctx context.Context, d v1.Descriptor) (rc io.ReadCloser, err error) {
	err = src.each(func(h *host) error {
		// The request's context must outlive this call: the body is read later.
		ctx, cancel := context.WithCancelCause(ctx)
		body, err := h.open(ctx, d.Digest)
		if err != nil {
			cancel(err)
			return err
		}
		rc = &hostReader{host: h, ReadCloser: &stallReader{ReadCloser: body, limit: src.config.StallTimeout, stalled: ctx, cancel: cancel}}
		return nil
	})
	return rc, err
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
