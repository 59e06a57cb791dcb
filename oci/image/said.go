package image

import (
	"maps"
	"time"
)

// saidAge is how long a registry's word on what a tag stands for is used by others.
const saidAge = 2 * time.Second

// said is such a word. Who could have begun before it was asked for learns as much by it as by one of their own.
type said struct {
	asked  time.Time
	digest string
}

// noteSaid keeps a word, by reference and login, and none that is too old.
func (s *Store) noteSaid(key string, w said) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.said, func(_ string, w said) bool { return s.config.Now().Sub(w.asked) > saidAge })
	s.said[key] = w
}

// saidSince is the digest of a word that was asked for since then, and lately; empty: there is none.
func (s *Store) saidSince(key string, then time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.said[key]; !then.IsZero() && !w.asked.Before(then) && s.config.Now().Sub(w.asked) <= saidAge {
		return w.digest
	}
	return ""
}
