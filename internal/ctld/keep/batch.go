package keep

import (
	"errors"
	"os"
	"path/filepath"

	"gbatch/oci/logs"
)

// Batch is pieces that are taken in together. Those that are complete small logs are made
// durable together, by its End. It belongs to one goroutine.
type Batch struct {
	s     *Store
	small map[string][]newcomer // by user
}

// Batch begins one.
func (s *Store) Batch() *Batch { return &Batch{s: s, small: map[string][]newcomer{}} }

// Append takes a piece in. It says how far the log is then: where the next piece
// shall begin, whatever became of this one. What is there already is not taken
// twice. A log that is done takes no more; nobody is told that one is before End.
func (b *Batch) Append(k Key, piece Piece) (end int64, done bool, err error) {
	if p, at := b.s.smallLog(k); p != nil && !at.bad {
		return piece.Offset + int64(len(piece.Data)), true, nil
	}
	n, ok := nameOf(k)
	if !ok || !piece.End || piece.Offset > 0 || len(piece.Data) > logs.MaxWhole || b.s.begun(k) {
		return b.s.append(k, piece)
	}
	now := b.s.now()
	c := newcomer{small{name: n, word: wordPlace(b.s.firstWord(piece.Archive)), came: now.UnixMilli()}, logs.Whole{Data: piece.Data, Sum: logs.SumOf(piece.Data), At: now}}
	b.small[k.User] = append(b.small[k.User], c)
	b.s.mu.Lock()
	b.s.taken += int64(len(piece.Data))
	b.s.mu.Unlock()
	return int64(len(piece.Data)), true, nil
}

// End has what was said to be done on the disk. Where it fails, small logs may be there or
// not: whoever has them still shall send them again.
func (b *Batch) End() error {
	var errs error
	for user, list := range b.small {
		errs = errors.Join(errs, b.s.add(user, list))
	}
	return errs
}

// begun says that a log has a directory, or had one of which something may still come.
func (s *Store) begun(k Key) bool {
	s.mu.Lock()
	e := s.logs[k]
	s.mu.Unlock()
	if e != nil {
		return true
	}
	_, err := os.Lstat(filepath.Join(s.dir, k.path()))
	return !errors.Is(err, os.ErrNotExist)
}

// has says that a log is here, complete or not.
func (s *Store) has(k Key) bool {
	if p, _ := s.smallLog(k); p != nil {
		return true
	}
	_, err := os.Stat(filepath.Join(s.dir, k.path()))
	return err == nil
}

// putWhole puts a small log where it belongs that came from another controller or out of the archive.
func (s *Store) putWhole(k Key, n name, w logs.Whole, word string) error {
	now := s.now()
	if len(w.Data) == 0 {
		w.At = now // which an empty one does not say
	}
	return s.add(k.User, []newcomer{{small{name: n, word: wordPlace(word), came: now.UnixMilli()}, w}})
}
