package image

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"gbatch/oci/image/bounds"
	"gbatch/oci/image/share"
)

// Layers from other nodes. Manifest and config always come from the registry, by the user's own
// login, and so does the word that this login may have a layer: only its bytes may come from a
// node to which the same repository once served them. They are verified as the registry's are.
// Any failure there leads to the next node, and in the end to the registry.

// Peers is how a store shares compressed layers with those of other nodes.
type Peers struct {
	Keep    int64         // bytes of compressed layers to keep for others; 0: none
	KeepFor time.Duration // without being read. Default 10 minutes
	Stall   time.Duration // in which a node must send a good part. Default 20 s
	Wait    time.Duration // that one pull may wait for nodes that are about to have layers. Default 30 s

	// Came is told of the bytes that layers cost, and whether they came from another node. Nil: nobody is.
	Came func(bytes int64, peer bool)
}

func (p *Peers) complete() {
	setDefault(&p.KeepFor, 10*time.Minute)
	setDefault(&p.Stall, 20*time.Second)
	setDefault(&p.Wait, 30*time.Second)
	if p.Came == nil {
		p.Came = func(int64, bool) {}
	}
}

// Shared opens a compressed layer for another node, which has shown that it may read that image.
// Where the image is being pulled it waits for the layer until ctx ends; the reader waits for the
// rest of what is here in part for as long as life.
func (s *Store) Shared(ctx, life context.Context, image, digest string) (r io.ReadCloser, size int64, err error) {
	k, err := s.spool.Open(ctx, life, image, digest)
	if err == nil {
		return k, k.Size(), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.layers {
		if slices.ContainsFunc(l.Served, func(served string) bool { return hasDigest(served, digest) }) {
			return nil, 0, share.ErrNever
		}
	}
	return nil, 0, err
}

// hasDigest says whether an entry of layer.json's served list is of those bytes.
func hasDigest(served, digest string) bool {
	n := len(served) - len(digest)
	return n > 0 && served[n-1] == ' ' && served[n:] == digest
}

// leastOfPeer is what a node must send in Peers.Stall, or it is left.
const leastOfPeer = 8 << 20

// pauseBetween is how long nodes that lack a layer are left alone.
const pauseBetween = 200 * time.Millisecond

// fromPeers has a layer from another node; false: from none.
func (s *Store) fromPeers(ctx context.Context, o *origin, l layer, h *hub) (bool, error) {
	if len(o.peers.Good()) == 0 {
		return false, nil
	}
	has, identity, err := o.has(ctx, l.desc)
	if err != nil || !has {
		return false, nil // the registry says why when it is asked for the layer
	}
	for {
		later := false
		for _, p := range o.peers.Good() {
			err := s.fromPeer(ctx, o, l, p, from{identity: identity, hub: h})
			if err == nil {
				return true, nil
			}
			if ctx.Err() != nil {
				return false, context.Cause(ctx)
			}
			if e, ok := errors.AsType[*PullError](err); ok && (e.Kind == Unsupported || e.Fault() == FaultNode) {
				return false, nil // the image's own doing, or this node's: so it will be from anywhere
			}
			switch {
			case errors.Is(err, share.ErrLacks):
				later = true
			case !errors.Is(err, share.ErrNever):
				o.peers.Leave(p)
			}
		}
		most, done := o.peers.Wait()
		if later && most > 0 {
			err = sleep(ctx, pauseBetween)
		}
		done()
		if err != nil || !later || most == 0 {
			return false, err
		}
	}
}

// fromPeer has a layer from one node.
func (s *Store) fromPeer(ctx context.Context, o *origin, l layer, p *share.Asked, f from) error {
	asking, cancel := context.WithCancelCause(ctx) // ends with the body
	defer cancel(nil)
	wait, done := o.peers.Wait()
	silent := time.AfterFunc(wait+s.config.Peers.Stall, func() { cancel(bounds.ErrStalled) })
	body, err := p.Layer(asking, o.ref.Name(), l.desc.Digest.String(), wait)
	silent.Stop()
	done()
	if err != nil {
		return err
	}
	f.body = &bounds.Stall{ReadCloser: body, Limit: s.config.Peers.Stall, Least: leastOfPeer, Stalled: asking, Cancel: cancel}
	return s.unpackLayer(ctx, o, l, f)
}

// from is where the bytes of a layer come from.
type from struct {
	body     io.ReadCloser // of another node; nil: the registry
	identity string        // as whom, where the registry was asked before
	hub      *hub
}

// unpackLayer downloads and unpacks a layer in one stream, and keeps its compressed bytes for others.
func (s *Store) unpackLayer(ctx context.Context, o *origin, l layer, f from) error {
	tmp, err := os.MkdirTemp(s.layout.Tmp, "layer-")
	if err != nil {
		if f.body != nil {
			f.body.Close()
		}
		return classifyLocal(err)
	}
	defer os.RemoveAll(tmp)
	var kept *share.Layer
	if !o.ref.Local() {
		kept = s.spool.Begin(share.Key(o.ref.Name(), l.desc.Digest.String()), l.desc.Size, s.disk.spare())
	}
	u, err := o.unpack(ctx, l, tmp, lent{kept: kept, body: f.body, seen: func(n int64) {
		s.spool.Grow(kept, n)
		f.hub.publish(Progress{Bytes: n})
	}})
	s.spool.End(kept, err == nil && u.kept)
	if err != nil {
		return err
	}
	if f.body != nil {
		u.identity = f.identity
	}
	if !o.ref.Local() {
		s.config.Peers.Came(l.desc.Size, f.body != nil)
	}
	f.hub.publish(Progress{Bytes: l.desc.Size})
	u.info.prove(o, l, u.identity)
	return s.addLayer(l.diffID.Hex, tmp, u.info)
}
