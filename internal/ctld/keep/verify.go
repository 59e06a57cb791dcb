package keep

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"gbatch/oci/logs"
)

// Verify reads every log, and says which of them the disk has damaged: whoever reads such a log
// is told where. It calls pace before so many bytes are read, whose error ends it.
func (s *Store) Verify(pace func(bytes int64) error) (damaged []string, err error) {
	s.mu.Lock()
	keys := slices.SortedFunc(maps.Keys(s.logs), func(a, b Key) int { return cmp.Compare(a.path(), b.path()) })
	s.mu.Unlock()
	for _, k := range keys {
		bad, err := s.verify(k, pace)
		if err != nil {
			return damaged, err
		}
		if bad > 0 {
			damaged = append(damaged, damage(k, bad))
		}
	}
	s.mu.Lock()
	var packs []*pack
	for _, u := range s.packs {
		packs = append(packs, u.list...)
	}
	s.mu.Unlock()
	slices.SortFunc(packs, func(a, b *pack) int { return cmp.Compare(a.path(), b.path()) })
	for _, p := range packs {
		s.mu.Lock()
		list, end := slices.Clone(p.logs), p.end
		s.mu.Unlock()
		if err := pace(end); err != nil {
			return damaged, err
		}
		for _, l := range list {
			w, err := readSmall(p.path(), l)
			if errors.Is(err, fs.ErrNotExist) {
				break // it went meanwhile
			}
			if err != nil {
				return damaged, err
			}
			if w.Damaged() {
				damaged = append(damaged, damage(l.key(p.key.User), int64(l.size)))
			}
		}
	}
	return damaged, nil
}

// verify is how much of a log in a directory is damaged.
func (s *Store) verify(k Key, pace func(bytes int64) error) (bad int64, err error) {
	l, err := logs.Open(filepath.Join(s.dir, k.path()), func() bool { return true })
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // it went meanwhile
	}
	if err != nil {
		return 0, err
	}
	bad, err = l.Verify(pace)
	return bad, errors.Join(err, l.Close())
}

func damage(k Key, bytes int64) string {
	return fmt.Sprintf("%d bytes of the log of %s, attempt %d, rank %d, of %s", bytes, k.UUID, k.Attempt, k.Rank, k.User)
}
