package image

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"gbatch/oci/treesum"
)

// A layer's bytes are checked against its digest as they come, and cannot be again, as the archive that
// it was is not kept. So a sum of what was unpacked is made at once, while all of it is still in memory, and Verify compares
// it with what the disk has. The sum costs about a fiftieth of the unpacking; to keep the archives would
// cost half as much disk again, and their decompression at each look.

// Damage is a layer that was found to be other than it was unpacked. It is not given to anybody any
// more, and pulled again with the next image that needs it.
type Damage struct {
	Layer string
	Why   string
	// Held are the images with holds that have the layer: containers may run on it. It stays for them
	// until the holds are released. Sorted.
	Held []string
}

// Verify reads all layers from the disk, and says which were damaged. It tells pace how
// much it has read, which may wait; its error ends the work. A layer that cannot be looked at now
// keeps it from no other: that is said when all the others have been read.
func (s *Store) Verify(pace func(bytes int64) error) ([]Damage, error) {
	s.mu.Lock()
	var ids []string
	for id := range s.layers {
		if !isAside(id) {
			ids = append(ids, id)
		}
	}
	s.mu.Unlock()
	slices.Sort(ids)
	var all []Damage
	var ended, first error
	missed := 0
	for _, id := range ids {
		d, err := s.verifyLayer(id, func(bytes int64) error { ended = pace(bytes); return ended })
		if d != nil {
			all = append(all, *d)
		}
		if ended != nil {
			return all, ended
		}
		if err != nil {
			first = cmp.Or(first, fmt.Errorf("verify layer %s: %w", id, err))
			missed++
		}
	}
	if missed > 1 { // for the same reason, most likely
		first = fmt.Errorf("%w; so it is with %d more layers", first, missed-1)
	}
	return all, errors.Join(first, s.layout.Sweep())
}

func (s *Store) verifyLayer(id string, pace func(bytes int64) error) (*Damage, error) {
	before, err := os.Lstat(s.layout.Files(id))
	if err != nil {
		return nil, nil // collected meanwhile, or missing: a pull notices that by itself
	}
	sum, broken := s.treeSum(s.layout.Files(id), treesum.How{Disk: true, Pace: pace})
	if broken != nil && !treesum.Broken(broken) {
		return nil, broken
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	info, ok := s.layers[id]
	if now, err := os.Lstat(s.layout.Files(id)); !ok || err != nil || !os.SameFile(before, now) {
		return nil, nil
	}
	switch {
	case broken != nil:
		return s.damagedLocked(id, broken.Error())
	case info.Sum == "": // of an earlier version; what it is now is all that is known
		info.Sum = sum
		if err := writeJSON(s.layout.Marker(id), info); err != nil {
			return nil, err
		}
		s.layers[id] = info
	case info.Sum != sum:
		return s.damagedLocked(id, "its files are not what they were when it was unpacked")
	}
	return nil, nil
}

func (s *Store) damagedLocked(id, why string) (*Damage, error) {
	d := &Damage{Layer: id, Why: why}
	for _, h := range s.holds {
		if slices.Contains(h.Layers, id) {
			d.Held = append(d.Held, h.Digest)
		}
	}
	slices.Sort(d.Held)
	return d, s.dismissLocked(id)
}

// A layer that was set aside has another name. Only the holds that it stays for know it.
const asideMark = "-damaged-"

func isAside(id string) bool { return strings.Contains(id, asideMark) }

// dismissLocked takes a layer out of the store, so that it is pulled again. Where holds have it,
// containers may run on it, which would lose their files: then it is set aside until they are released.
func (s *Store) dismissLocked(id string) error {
	if _, err := os.Lstat(s.layout.Layer(id)); errors.Is(err, os.ErrNotExist) {
		delete(s.layers, id)
		return nil
	}
	var holds []hold
	for _, h := range s.holds {
		if slices.Contains(h.Layers, id) {
			holds = append(holds, h)
		}
	}
	if len(holds) == 0 {
		delete(s.layers, id)
		return s.layout.Discard(s.layout.Layer(id))
	}
	dir, err := os.MkdirTemp(s.layout.Layers, id+asideMark)
	if err != nil {
		return fmt.Errorf("set it aside: %w", err)
	}
	aside := filepath.Base(dir)
	for _, h := range holds { // first, or a crash would leave it without any
		h.Layers = append(slices.Clone(h.Layers), aside)
		if err := writeJSON(s.layout.Hold(h.ID), h); err != nil {
			return fmt.Errorf("set it aside: %w", err)
		}
		s.holds[h.ID] = h
	}
	if err := unix.Rename(s.layout.Layer(id), dir); err != nil { // onto an empty directory, which os.Rename refuses
		return fmt.Errorf("set it aside: %w", err)
	}
	s.layers[aside] = unpacked{Size: s.layers[id].Size}
	delete(s.layers, id)
	return nil
}

// asides are the layers of a hold that were set aside for it.
func (h hold) asides() []string {
	return slices.DeleteFunc(slices.Clone(h.Layers), func(id string) bool { return !isAside(id) })
}
