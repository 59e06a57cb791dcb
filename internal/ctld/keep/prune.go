package keep

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"gbatch/oci/logs"
)

// pruneEvery is how often old logs are looked for.
const pruneEvery = time.Minute

// Run finds what an earlier controller kept, and keeps the store within its
// bounds until ctx ends.
func (s *Store) Run(ctx context.Context) {
	s.find(ctx)
	every := time.NewTicker(pruneEvery)
	defer every.Stop()
	for {
		s.prune()
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

// find fills the table with what is there.
func (s *Store) find(ctx context.Context) {
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || !d.IsDir() {
			return nil // it went meanwhile
		}
		rel, _ := filepath.Rel(s.dir, path)
		if user, ok := parsePackDir(rel); ok {
			s.of(user)
			return fs.SkipDir
		}
		if k, ok := parseKey(rel); ok {
			s.entry(k)
			return fs.SkipDir
		}
		return nil
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		s.log.Error("look through kept logs", "error", err)
	}
}

// Room makes room for more if the disk is too full, or says that there is none.
func (s *Store) Room() error {
	if lack := s.lack(); lack <= 0 {
		return nil
	}
	s.prune()
	lack := s.lack() > 0
	s.mu.Lock()
	was := s.full
	s.full = lack
	s.mu.Unlock()
	if !lack {
		return nil
	}
	if !was {
		s.log.Error("no more logs are taken from nodes, which keep theirs: the disk is too full", "dir", s.dir, "free", s.limits().Free)
	}
	return ErrFull
}

// lack is how many bytes the disk should have free and has not.
func (s *Store) lack() int64 {
	free, err := s.free(s.dir)
	if err != nil {
		return 0
	}
	return s.limits().Free - free
}

// prune removes what is too old, and the oldest of what is too much.
func (s *Store) prune() {
	l := s.limits()
	lack := s.lack()
	s.mu.Lock()
	gone := s.surplus(l, lack)
	s.mu.Unlock()
	for _, e := range gone {
		s.remove(e)
	}
	if len(gone) > 0 {
		s.log.Info("kept logs removed", "logs", len(gone), "left", s.Bytes())
	}
}

// surplus takes out what is to be removed: what is too old, the oldest of users
// who have more than they may, and, while all is too much or the disk too
// full, the oldest of whoever has most. Called with mu held.
func (s *Store) surplus(l Limits, lack int64) (gone []*entry) {
	now := s.now()
	byUser := map[string][]*entry{}
	for _, e := range s.entries() {
		k := e.key
		switch {
		case e.gone && now.Sub(e.touched) > time.Hour:
			delete(s.logs, k) // its node sends no more
		case e.gone:
		case now.Sub(e.touched) > l.For:
			lack -= s.take(e)
			gone = append(gone, e)
		default:
			byUser[k.User] = append(byUser[k.User], e)
		}
	}
	sorted := map[string]bool{}
	oldest := func(user string) *entry {
		list := byUser[user]
		if !sorted[user] {
			slices.SortFunc(list, func(a, b *entry) int {
				return cmp.Or(a.touched.Compare(b.touched), cmp.Compare(a.path(), b.path()))
			})
			sorted[user] = true
		}
		byUser[user] = list[1:]
		return list[0]
	}
	for user := range byUser {
		for s.users[user] > l.User && len(byUser[user]) > 0 {
			e := oldest(user)
			lack -= s.take(e)
			gone = append(gone, e)
		}
	}
	for s.bytes > l.All || lack > 0 {
		user, has := "", int64(0)
		for u, list := range byUser {
			if n := s.users[u]; len(list) > 0 && (n > has || n == has && u < user) {
				user, has = u, n
			}
		}
		if has == 0 {
			break
		}
		e := oldest(user)
		lack -= s.take(e)
		gone = append(gone, e)
	}
	return gone
}

// entries are all logs, and packs of small ones. Called with mu held.
func (s *Store) entries() []*entry {
	list := make([]*entry, 0, len(s.logs))
	for _, e := range s.logs {
		list = append(list, e)
	}
	for _, u := range s.packs {
		for _, p := range u.list {
			list = append(list, &p.entry)
		}
	}
	return list
}

// path tells an entry from others.
func (e *entry) path() string {
	if e.pack != nil {
		return e.pack.path()
	}
	return e.key.path()
}

// take notes that a log goes, and how much that frees. Called with mu held.
func (s *Store) take(e *entry) int64 {
	n := e.bytes
	s.count(e, -n)
	e.bytes, e.gone = 0, true
	return n
}

// remove removes a log's files. What its node still sends begins a new one behind
// what was there.
func (s *Store) remove(e *entry) {
	if e.pack != nil {
		s.removePack(e.pack)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s.closeWriter(e)
	if e.word == wordDue {
		s.log.Warn("log removed before it was archived", "job", e.key.UUID, "user", e.key.User)
	}
	dir := filepath.Join(s.dir, e.key.path())
	floor := int64(0)
	if l, err := logs.Open(dir, nil); err == nil {
		floor, _ = l.End() // else all of it comes again
	}
	if err := os.RemoveAll(dir); err != nil {
		s.log.Error("remove kept log", "error", err)
	}
	os.Remove(filepath.Dir(dir)) // if it is empty
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(e, -e.bytes) // what came meanwhile
	e.bytes, e.floor = 0, max(e.floor, floor)
}

// Bytes is how much is kept, about.
func (s *Store) Bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// Due is how many logs are to be archived and are not yet.
func (s *Store) Due() int { return len(s.due(wordDue)) }

// Counts are how many logs are kept, of how many users, and how many bytes came
// since the start.
func (s *Store) Counts() (logs, users int, taken int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries() {
		switch {
		case e.gone:
		case e.pack != nil:
			logs += len(e.pack.logs)
		default:
			logs++
		}
	}
	return logs, len(s.users), s.taken
}

// Most is how much may be kept.
func (s *Store) Most() int64 { return s.limits().All }
