package image

import (
	"cmp"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// Usage is how many images there are, and what their layers take on disk.
func (s *Store) Usage() (images int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.layers {
		bytes += l.Size
	}
	return len(s.images), bytes
}

// Collected is what a GC did.
type Collected struct {
	Images []string // digests of those removed
	Freed  int64    // bytes
	Kept   int64    // bytes still in the store
}

// GC removes images by last use, oldest first, until the store's layers take
// no more than Config.MaxBytes, and all layers and blobs that no image needs.
// It never removes an image that is held, was used within the minute before
// now, or whose layers a pull is waiting for.
func (s *Store) GC(now time.Time) (Collected, error) {
	s.spool.Expire(now)
	c, err := s.collect(now)
	return c, errors.Join(err, s.layout.Sweep())
}

// collect takes things out of the store; it holds the lock, so it renames only.
func (s *Store) collect(now time.Time) (Collected, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var c Collected
	var errs []error
	for _, rec := range s.victimsLocked(now) {
		if err := os.Remove(s.layout.Record(rec.Digest.String())); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
			continue
		}
		delete(s.images, rec.Digest.String())
		c.Images = append(c.Images, rec.Digest.String())
	}
	needed := s.usedLayersLocked()
	for id := range s.pins {
		needed[id] = true
	}
	for _, h := range s.holds {
		for _, id := range h.Layers {
			needed[id] = true
		}
	}
	for id, info := range s.layers {
		if needed[id] {
			c.Kept += info.Size
			continue
		}
		if strings.HasSuffix(id, "-dirs") && len(s.pins) > 0 {
			continue // may belong to a pull; it is small
		}
		if err := s.layout.Discard(s.layout.Layer(id)); err != nil {
			errs = append(errs, err)
			continue
		}
		delete(s.layers, id)
		c.Freed += info.Size
	}
	if len(s.pins) == 0 {
		errs = append(errs, s.removeBlobsLocked())
	}
	return c, errors.Join(errs...)
}

// victimsLocked chooses the images to remove.
func (s *Store) victimsLocked(now time.Time) []*record {
	if s.config.MaxBytes <= 0 {
		return nil
	}
	users := map[string]int{} // of each layer
	var total int64
	for id := range s.pins {
		users[id]++
		total += s.layers[id].Size
	}
	for _, rec := range s.images {
		for _, id := range rec.Layers {
			if users[id]++; users[id] == 1 {
				total += s.layers[id].Size
			}
		}
	}
	held := map[string]bool{}
	for _, h := range s.holds {
		held[h.Digest] = true
	}
	oldestFirst := slices.SortedFunc(maps.Values(s.images), func(a, b *record) int {
		return cmp.Or(a.lastUse.Compare(b.lastUse), strings.Compare(a.Digest.Hex, b.Digest.Hex))
	})
	var victims []*record
	for _, rec := range oldestFirst {
		if total <= s.config.MaxBytes {
			break
		}
		if held[rec.Digest.String()] || now.Sub(rec.lastUse) < graceAfterUse {
			continue
		}
		victims = append(victims, rec)
		for _, id := range rec.Layers {
			if users[id]--; users[id] == 0 {
				total -= s.layers[id].Size
			}
		}
	}
	return victims
}

// removeBlobsLocked removes manifests and configs of images that are gone.
func (s *Store) removeBlobsLocked() error {
	needed := map[string]bool{}
	for _, rec := range s.images {
		for _, h := range rec.Blobs {
			needed[h.Hex] = true
		}
	}
	entries, err := os.ReadDir(s.layout.Blobs)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !needed[e.Name()] {
			err = errors.Join(err, s.layout.Discard(s.layout.Blobs+"/"+e.Name()))
		}
	}
	return err
}
