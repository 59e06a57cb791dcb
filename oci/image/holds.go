package image

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"gbatch/oci/atomicfile"
)

type hold struct {
	ID     string `json:"id"`
	Digest string `json:"digest"`
	// Layers are kept even if the image's record should be lost: a container
	// is running on them.
	Layers []string `json:"layers"`
}

var errAbsent = errors.New("not in the store; pull it first")

// Hold keeps GC from an image until Release, also across restarts. The id is
// the caller's, for example that of the container; a second Hold with the same
// id replaces the first. It fails if the image is not in the store.
func (s *Store) Hold(id, digest string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	rec := s.images[digest]
	if rec == nil {
		return fmt.Errorf("hold image %s for %s: %w", digest, id, errAbsent)
	}
	h := hold{ID: id, Digest: digest, Layers: rec.Layers}
	if old := s.holds[id]; old.Digest == digest { // who had the damaged ones may still run
		h.Layers = slices.Concat(h.Layers, old.asides())
	}
	if slices.Equal(s.holds[id].Layers, h.Layers) && s.holds[id].Digest == digest {
		return nil
	}
	if err := writeJSON(s.layout.Hold(id), h); err != nil {
		return fmt.Errorf("hold image %s for %s: %w", digest, id, err)
	}
	s.holds[id] = h
	return nil
}

// Release ends a Hold. Unknown ids are no error, so it can be repeated.
func (s *Store) Release(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.holds, id)
	if err := os.Remove(s.layout.Hold(id)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("release image of %s: %w", id, err)
	}
	return nil
}

// Holds returns the digest for each id, so that the caller can release what
// it does not know any more.
func (s *Store) Holds() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]string, len(s.holds))
	for id, h := range s.holds {
		all[id] = h.Digest
	}
	return all
}

func (s *Store) loadHolds() error {
	entries, err := os.ReadDir(s.layout.Holds)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := filepath.Join(s.layout.Holds, e.Name())
		var h hold
		if err := atomicfile.ReadJSON(name, &h); err != nil || s.layout.Hold(h.ID) != name {
			if err := os.Remove(name); err != nil {
				return err
			}
			continue
		}
		s.holds[h.ID] = h
	}
	return nil
}
