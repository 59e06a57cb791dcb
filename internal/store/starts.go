package store

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"gbatch/internal/state"
)

// start is one of the store's starts.
type start struct {
	ID   uint64 `json:"id"`
	From uint64 `json:"from"` // commits before it
}

// maxStarts bounds the starts that are remembered.
const maxStarts = 1000

// noteStart adds this start to those that the store has had.
func (s *Store) noteStart(b *pebble.Batch) error {
	text, ok, err := s.get(keyStarts)
	if err != nil {
		return err
	}
	if ok {
		if err := json.Unmarshal(text, &s.starts); err != nil {
			return fmt.Errorf("read %s: %w", keyStarts, err)
		}
	}
	s.starts = append(s.starts, start{rand.Uint64(), s.mark.Count})
	s.starts = s.starts[max(0, len(s.starts)-maxStarts):]
	text, err = json.Marshal(s.starts)
	if err != nil {
		return err
	}
	return b.Set(keyStarts, text, nil)
}

// Point is how far the store has come. It may be called at any time.
func (s *Store) Point() state.Point {
	return state.Point{Start: s.starts[len(s.starts)-1].ID, Commits: s.commits.Load()}
}

// Was says whether the store has once been at p. Of starts that were too long ago
// to be remembered it is taken to be true.
func (s *Store) Was(p state.Point) bool {
	i := slices.IndexFunc(s.starts, func(x start) bool { return x.ID == p.Start })
	switch {
	case i < 0:
		return len(s.starts) == maxStarts
	case i == len(s.starts)-1:
		return p.Commits <= s.commits.Load()
	}
	return p.Commits <= s.starts[i+1].From
}
