package keep

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"gbatch/oci/atomicfile"
	"gbatch/oci/logs"
)

// packs are the small logs of one user: most tasks write a line or two, and a directory
// for each of those costs more than all else that is done for the task here.
type packs struct {
	user string
	dir  string

	mu sync.Mutex // before the store's; held while files here are written or removed

	// Guarded by the store's.
	read bool    // what an earlier controller has written is in list
	list []*pack // the oldest first
	at   map[name]place
	next uint64 // number of the next one
	last *pack  // may be appended to; nil: a new one is begun
}

// pack is one file of them. It is removed as a whole.
type pack struct {
	entry // its time is that of the log that came last
	of    *packs
	n     uint64
	begun time.Time
	end   int64 // of the file
	logs  []small
	words [len(packWords)]int // how many logs have each of them
}

func (u *packs) newPack(n uint64) *pack {
	p := &pack{of: u, n: n}
	p.key, p.pack = Key{User: u.user}, p
	return p
}

func (p *pack) path() string { return filepath.Join(p.of.dir, packName(p.n)) }

// place is where a log is: the pack's number, and which of its logs.
type place struct {
	pack uint64
	i    uint32
}

// pack is the one with a number, nil: it is gone. Called with the store's mutex held.
func (u *packs) pack(n uint64) *pack {
	i, ok := slices.BinarySearchFunc(u.list, n, func(p *pack, n uint64) int { return int(int64(p.n) - int64(n)) })
	if !ok {
		return nil
	}
	return u.list[i]
}

// log is the one with a name, nil: it is not here. Called with the store's mutex held.
func (u *packs) log(n name) *small {
	at, ok := u.at[n]
	if p := u.pack(at.pack); ok && p != nil {
		return &p.logs[at.i]
	}
	return nil
}

// perSmall is what a small log is counted as beside its bytes: most of it is its place in
// the table, so what all may have bounds the table, too.
const perSmall = 8 << 10

// A pack is full, and another one begun, with so many logs or so large a part of what its
// user may have, and after so large a part of the time for which logs are kept: it is
// removed when its last one is too old.
const (
	maxPackLogs = 1024
	packOfUser  = 8
	packOfTime  = 24
	maxPackTime = time.Hour
)

func (p *pack) full(l Limits, now time.Time) bool {
	return p.gone || len(p.logs) >= maxPackLogs || p.bytes >= l.User/packOfUser || now.Sub(p.begun) > min(l.For/packOfTime, maxPackTime)
}

// of are the packs of a user, as their files are.
func (s *Store) of(user string) *packs {
	s.mu.Lock()
	u := s.packs[user]
	if u == nil {
		u = &packs{user: user, dir: filepath.Join(s.dir, packDir(user)), at: map[name]place{}}
		s.packs[user] = u
	}
	read := u.read
	s.mu.Unlock()
	if !read {
		u.mu.Lock()
		defer u.mu.Unlock()
		s.readPacks(u)
	}
	return u
}

// readPacks fills the table with what is there. Called with the mutex of the packs held.
func (s *Store) readPacks(u *packs) {
	if u.read { // another one was first; nobody else changes it
		return
	}
	numbers, err := packsIn(u.dir)
	if err != nil {
		s.log.Error("look through kept logs", "error", err)
	}
	list := make([]*pack, 0, len(numbers))
	for _, n := range numbers {
		p := u.newPack(n)
		b, err := readPackFile(p.path())
		if err != nil {
			s.log.Error("kept logs cannot be read", "error", err)
			continue
		}
		found, damaged, tail := readPack(b)
		if damaged > 0 {
			s.log.Error("kept logs are damaged on the disk", "file", p.path(), "bytes", damaged)
		}
		if tail > 0 {
			s.log.Warn("the last of a file of kept logs was not written to its end", "file", p.path(), "bytes", tail)
		}
		p.logs, p.end = found, int64(len(b))
		list = append(list, p)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.read, u.list = true, list; len(numbers) > 0 {
		u.next = numbers[len(numbers)-1] + 1
	}
	for _, p := range list {
		found := p.logs
		p.logs = nil
		s.include(p, found)
	}
}

// include puts logs of a pack into the table. Called with mu held.
func (s *Store) include(p *pack, list []small) {
	for _, l := range list {
		if old := p.of.log(l.name); old == nil || old.bad {
			p.of.at[l.name] = place{p.n, uint32(len(p.logs))}
		}
		p.logs = append(p.logs, l)
		p.words[l.word]++
		if came := time.UnixMilli(l.came); came.After(p.touched) {
			p.touched = came
		}
		p.bytes += perSmall + int64(l.size)
		s.count(&p.entry, perSmall+int64(l.size))
	}
}

// smallLog is the place of a log in a pack, nil: it is in none.
func (s *Store) smallLog(k Key) (*pack, small) {
	n, ok := nameOf(k)
	if !ok {
		return nil, small{}
	}
	u := s.of(k.User)
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := u.at[n]
	if p := u.pack(at.pack); ok && p != nil {
		return p, p.logs[at.i]
	}
	return nil, small{}
}

// whole is a small log, nil: it is not here.
func (s *Store) whole(k Key) (*logs.Whole, small, error) {
	p, at := s.smallLog(k)
	if p == nil {
		return nil, at, nil
	}
	w, err := readSmall(p.path(), at)
	if errors.Is(err, fs.ErrNotExist) { // it was just removed, or the disk has lost it
		return nil, at, nil
	}
	return &w, at, err
}

// newcomer is a log that is to be put into a pack.
type newcomer struct {
	small
	logs.Whole
}

// add puts logs of a user into a pack, all of them or none, and makes them durable.
func (s *Store) add(user string, list []newcomer) error {
	u := s.of(user)
	u.mu.Lock()
	defer u.mu.Unlock()
	s.mu.Lock()
	p := u.last
	if p == nil || p.full(s.limits(), s.now()) {
		p = u.newPack(u.next)
		p.begun = s.now()
	}
	var buf []byte
	var found []small
	seen := map[name]bool{}
	for _, c := range list {
		if old := u.log(c.name); old != nil && !old.bad || seen[c.name] { // the same came twice at a time
			continue
		}
		seen[c.name] = true
		c.off, c.size = uint32(p.end)+uint32(len(buf)), uint32(len(c.Data))
		buf, found = appendLog(buf, c.small, c.Whole), append(found, c.small)
	}
	s.mu.Unlock()
	if len(found) == 0 {
		return nil
	}
	err := s.writePack(p, buf)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		u.last = nil // what is in the file behind its end is not known any more
		u.next = max(u.next, p.n+1)
		return fmt.Errorf("keep logs: %w", err)
	}
	if p != u.last {
		u.list, u.last, u.next = append(u.list, p), p, p.n+1
	}
	p.end += int64(len(buf))
	s.include(p, found)
	return nil
}

// writePack appends to a pack, durably, or leaves it as it was. Called with the mutex of
// the packs held.
func (s *Store) writePack(p *pack, buf []byte) (err error) {
	begins := p.end == 0
	if begins {
		if err := atomicfile.Dir(p.of.dir, 0o700, s.log); err != nil {
			return err
		}
	}
	flags := os.O_WRONLY
	if begins {
		flags |= os.O_CREATE | os.O_EXCL
	}
	f, err := os.OpenFile(p.path(), flags, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err = f.WriteAt(buf, p.end); err == nil {
		err = s.sync(f)
	}
	for dir := p.of.dir; begins && err == nil; dir = filepath.Dir(dir) { // its name, and those of the directories that may be new
		if err = atomicfile.SyncDir(dir); dir == s.dir {
			break
		}
	}
	if err == nil {
		return nil
	}
	if begins {
		return errors.Join(err, os.Remove(p.path()))
	}
	return errors.Join(err, f.Truncate(p.end))
}

// markSmall writes another word for a log in its pack.
func (s *Store) markSmall(p *pack, at small, word string) error {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	s.mu.Lock()
	place, ok := p.of.at[at.name]
	if ok = ok && place.pack == p.n && !p.gone; ok {
		l := &p.logs[place.i]
		p.words[l.word]--
		l.word = wordPlace(word)
		p.words[l.word]++
	}
	s.mu.Unlock()
	if !ok {
		return nil
	}
	f, err := os.OpenFile(p.path(), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(headWordOf(wordPlace(word)), int64(at.off)+headWord)
	return errors.Join(err, f.Close())
}

// removePack removes a pack's file.
func (s *Store) removePack(p *pack) {
	u := p.of
	u.mu.Lock()
	defer u.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, l := range p.logs {
		if u.at[l.name] == (place{p.n, uint32(i)}) {
			delete(u.at, l.name)
		}
		if packWords[l.word].word == wordDue {
			s.log.Warn("log removed before it was archived", "job", l.key(u.user).UUID, "user", u.user)
		}
	}
	u.list = slices.DeleteFunc(u.list, func(o *pack) bool { return o == p })
	if u.last == p {
		u.last = nil
	}
	s.count(&p.entry, -p.bytes) // what came meanwhile
	p.bytes, p.gone = 0, true
	if err := os.Remove(p.path()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Error("remove kept logs", "error", err)
	}
	os.Remove(u.dir) // if it is empty
}
