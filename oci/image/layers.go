package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/errgroup"

	"gbatch/oci/image/layout"
	"gbatch/oci/treesum"
)

// unpacked describes a layer directory; it is the content of layer.json.
type unpacked struct {
	DiffID  v1.Hash `json:"diffID,omitzero"` // none: it is of directories only, and could not be read again with an empty one
	Size    int64   `json:"size"`            // bytes of its files
	Entries int     `json:"entries"`
	// Implicit are directories that files of the layer lie in, but that the
	// layer does not describe; see dirs.go. Sorted.
	Implicit []string `json:"implicit,omitempty"`
	// Boot is the boot in which it was written. What no image refers to and
	// was written before a crash of the machine may not be on disk in full.
	Boot string `json:"boot"`
	// Sum is of all that was unpacked; see verify.go.
	Sum string `json:"sum,omitempty"`
	// Served and Granted say who may share it; see proof.go.
	Served  []string `json:"served,omitempty"`
	Granted []string `json:"granted,omitempty"`
}

// layerIntact reports whether a layer can be used, and forgets one whose
// directory or marker has gone.
func (s *Store) layerIntact(id string) (unpacked, bool) {
	s.mu.Lock()
	info, ok := s.layers[id]
	s.mu.Unlock()
	if !ok {
		return unpacked{}, false
	}
	dir, err := os.Lstat(s.layout.Files(id))
	if err == nil && dir.IsDir() {
		if _, err = os.Lstat(s.layout.Marker(id)); err == nil {
			return info, true
		}
	}
	s.mu.Lock()
	delete(s.layers, id)
	s.mu.Unlock()
	return unpacked{}, false
}

// pullLayers brings all layers of a plan into the store, each with the origin's
// proof that its login may have it.
func (s *Store) pullLayers(ctx context.Context, o *origin, p *plan, h *hub) error {
	track := newTracker(h, len(p.layers))
	var missing []layer
	for _, l := range p.layers {
		if info, ok := s.layerIntact(l.diffID.Hex); ok && info.allows(o.place(), o.identity) {
			track.done()
			continue
		}
		missing = append(missing, l)
		track.expect(l.desc.Size)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(s.config.Parallel)
	for _, l := range missing {
		group.Go(func() error {
			err := s.ensureLayer(ctx, o, l, track.layer())
			if err == nil {
				track.done()
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	var size int64
	for _, l := range p.layers {
		info, _ := s.layerIntact(l.diffID.Hex)
		size += info.Size
	}
	if size > s.config.MaxUnpackedBytes {
		return tooBig(s.config.MaxUnpackedBytes)
	}
	return nil
}

// ensureLayer pulls a layer unless it is there, together with whoever else is
// pulling it. What another has pulled must be proven too.
func (s *Store) ensureLayer(ctx context.Context, o *origin, l layer, watch func(Progress)) error {
	id := l.diffID.Hex
	for {
		if info, ok := s.layerIntact(id); ok {
			if info.allows(o.place(), o.identity) {
				return nil
			}
			return layerError(s.proveLayer(ctx, o, l, info, watch), l)
		}
		o.keep() // the work may go on for others when this pull is given up
		_, joined, err := s.layerFlights.do(ctx, id, watch, func(ctx context.Context, h *hub) (struct{}, error) {
			defer o.release()
			return struct{}{}, s.retry(ctx, 1, func() error { return s.fetchLayer(ctx, o, l, h) })
		})
		if joined {
			o.release()
		}
		// Another's failure may be due to its credentials: then try with ours.
		if err != nil && (!joined || ctx.Err() != nil) {
			return layerError(err, l)
		}
		if err == nil && !joined {
			return nil
		}
	}
}

// layerError says which layer is meant, where that tells the user something.
func layerError(err error, l layer) error {
	e, ok := errors.AsType[*PullError](err)
	if !ok {
		return err
	}
	named := *e
	switch e.Kind {
	case Corrupt:
		named.Detail = fmt.Sprintf("layer %d is corrupt: %s", l.number, e.Detail)
	case Unsupported, NotFound, Internal:
		named.Detail = fmt.Sprintf("layer %d: %s", l.number, e.Detail)
	}
	return &named
}

// fetchLayer brings a layer here from another node, or from where the image is.
func (s *Store) fetchLayer(ctx context.Context, o *origin, l layer, h *hub) error {
	if done, err := s.fromPeers(ctx, o, l, h); done || err != nil {
		return err
	}
	return s.unpackLayer(ctx, o, l, from{hub: h})
}

// addLayer moves a complete directory into the store. An entry that was found
// damaged makes way.
func (s *Store) addLayer(id, tmp string, info unpacked) error {
	var err error
	info.Boot = s.boot
	if info.Sum, err = treesum.Of(filepath.Join(tmp, "fs"), treesum.How{}); err != nil {
		return classifyLocal(err)
	}
	if err := writeJSON(filepath.Join(tmp, layout.MarkerName), info); err != nil {
		return classifyLocal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.layers[id]; ok {
		return nil // someone else was quicker
	}
	if err := s.dismissLocked(id); err != nil {
		return classifyLocal(err)
	}
	if err := os.Rename(tmp, s.layout.Layer(id)); err != nil {
		return classifyLocal(err)
	}
	s.layers[id] = info
	return nil
}

// makeDir makes a directory with exactly that mode, whatever the umask.
func makeDir(name string, mode os.FileMode) error {
	if err := os.Mkdir(name, mode); err != nil {
		return err
	}
	return os.Chmod(name, mode)
}
