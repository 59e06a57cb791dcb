package trees

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"syscall"

	"gbatch/internal/tree"
)

// Verify reads every chunk, and gives up those whose bytes are not those that were sent, with the
// trees that have them: a client that is asked for these brings the chunks again. It says what is
// gone, and calls pace before so many bytes are read, whose error ends it.
func (s *Store) Verify(pace func(bytes int64) error) (gone []string, err error) {
	s.mu.Lock()
	all := slices.SortedFunc(maps.Values(s.users), func(a, b *owner) int { return cmp.Compare(a.name, b.name) })
	s.mu.Unlock()
	for _, o := range all {
		o.mu.Lock()
		sizes := map[string]int64{}
		for sum, c := range o.chunks {
			sizes[sum] = c.size
		}
		o.mu.Unlock()
		for _, sum := range slices.Sorted(maps.Keys(sizes)) {
			if err := pace(sizes[sum]); err != nil {
				return gone, err
			}
			lost, err := o.verify(sum)
			if err != nil {
				return gone, err
			}
			gone = append(gone, lost...)
		}
	}
	return gone, nil
}

// verify looks at one chunk, and gives it up if it is damaged.
func (o *owner) verify(sum string) (gone []string, err error) {
	if is, err := whole(o.chunkPath(sum), sum); is || err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.chunks[sum]
	if c == nil {
		return nil, nil // it went meanwhile
	}
	if is, err := whole(o.chunkPath(sum), sum); is || err != nil {
		return nil, err
	}
	for id, k := range o.trees {
		if slices.ContainsFunc(k.Chunks, func(c tree.Chunk) bool { return c.Sum == sum }) {
			gone = append(gone, fmt.Sprintf("directory %s of %s", id, o.name))
		}
	}
	if len(gone) == 0 {
		gone = []string{fmt.Sprintf("chunk %s of %s, which no directory has", sum, o.name)}
	}
	slices.Sort(gone)
	return gone, o.giveUp(sum, c)
}

// giveUp removes a damaged chunk and the trees that have it. Called with mu held.
func (o *owner) giveUp(sum string, c *chunk) error {
	for id, k := range o.trees {
		if !slices.ContainsFunc(k.Chunks, func(c tree.Chunk) bool { return c.Sum == sum }) {
			continue
		}
		if err := o.drop(id); err != nil {
			return err
		}
	}
	if err := os.Remove(o.chunkPath(sum)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	delete(o.chunks, sum)
	o.bytes -= charge(c.size)
	return nil
}

// whole says whether a file has the bytes that its name promises. One that is gone, or cannot be
// read from its disk, has not; an error is of anything else.
func whole(path, sum string) (bool, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EIO) {
		return false, nil
	}
	return err == nil && tree.SumOf(data) == sum, err
}
