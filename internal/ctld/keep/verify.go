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
		l, err := logs.Open(filepath.Join(s.dir, k.path()), func() bool { return true })
		if errors.Is(err, fs.ErrNotExist) {
			continue // it went meanwhile
		}
		bad := int64(0)
		if err == nil {
			bad, err = l.Verify(pace)
			err = errors.Join(err, l.Close())
		}
		if err != nil {
			return damaged, err
		}
		if bad > 0 {
			damaged = append(damaged, fmt.Sprintf("%d bytes of the log of %s, attempt %d, rank %d, of %s", bad, k.UUID, k.Attempt, k.Rank, k.User))
		}
	}
	return damaged, nil
}
