package keep

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/oci/atomicfile"
	"gbatch/oci/logs"
)

// Limits bounds what is kept.
type Limits struct {
	Log, User, All int64         // bytes: of one log, of one user's, of all
	Free           int64         // bytes that logs leave on their disk
	For            time.Duration // after its last byte
}

// ErrFull says that the disk has no room for more now.
var ErrFull = errors.New("the controller's disk has no room for more logs")

// Store is all logs that are kept: those that came here complete and are small in packs, the
// others in a directory each. Close it when nobody appends any more.
type Store struct {
	dir    string
	limits func() Limits
	now    func() time.Time
	log    *slog.Logger
	free   func(dir string) (int64, error)
	sync   func(*os.File) error

	archive Archive // nil: there is none
	others  Archive // nil: this controller is alone

	mu    sync.Mutex
	logs  map[Key]*entry
	packs map[string]*packs // by user
	users map[string]int64  // bytes
	bytes int64
	open  []*entry // with a writer, the one used last at the end
	taken int64    // bytes since the start
	full  bool     // since the last look

	restores map[string]chan struct{} // by user whose log is brought back; closed when it is
}

// entry is one log, or a pack of small ones.
type entry struct {
	key  Key   // of a pack: with the user alone
	pack *pack // nil: it is one log

	mu     sync.Mutex   // before the store's; held while its files are written or removed
	writer *logs.Writer // nil: not open

	// Guarded by the store's.
	bytes    int64     // on the disk, about
	touched  time.Time // when its last byte came
	complete bool      // no more will come
	word     string    // of a complete one: wordDue, wordArchived, wordCopied, or none
	floor    int64     // what was before is removed, and shall not come again
	gone     bool      // its files were removed
}

// Options are what a store is made of.
type Options struct {
	Dir    string
	Limits func() Limits
	Now    func() time.Time
	Log    *slog.Logger
	Free   func(dir string) (int64, error) // of a disk; nil: asks the kernel

	Archive Archive // nil: there is none
	Others  Archive // the other controllers; nil: this one is alone
}

// Open makes the directory. What an earlier controller kept is found by Run. Without a directory no
// copies are kept, and nodes offer theirs again.
func Open(o Options) *Store {
	err := atomicfile.Dir(o.Dir, 0o700, o.Log)
	left, _ := filepath.Glob(filepath.Join(o.Dir, ".restore-*")) // of a controller that was killed; the pattern is good
	for _, dir := range left {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	if err != nil {
		o.Log.Error("the directory of logs cannot be used as it is", "error", err)
	}
	s := &Store{dir: o.Dir, limits: o.Limits, now: o.Now, log: o.Log, free: o.Free, sync: (*os.File).Sync, archive: o.Archive, others: o.Others, logs: map[Key]*entry{}, packs: map[string]*packs{}, users: map[string]int64{}, restores: map[string]chan struct{}{}}
	if s.free == nil {
		s.free = freeOf
	}
	return s
}

func freeOf(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * st.Bsize, nil
}

// Piece is some output of a rank, at its place.
type Piece struct {
	Offset int64
	Data   []byte
	Lost   int64 // bytes just before Offset that the node does not have either
	End    bool  // no more will come after Data

	Archive bool // the log is for the archive, when it is complete
}

// append is Batch.Append for a log that has a directory.
func (s *Store) append(k Key, p Piece) (end int64, done bool, err error) {
	e := s.entry(k)
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.isComplete(e) {
		return p.Offset + int64(len(p.Data)), true, nil
	}
	if err := s.openWriter(e); err != nil {
		return 0, false, err
	}
	before := e.writer.End()
	err = s.write(e, p)
	if err == nil && p.End && e.writer.End() == p.Offset+int64(len(p.Data)) {
		err = s.seal(e, p.Archive)
		done = err == nil
	}
	end = e.writer.End()
	s.wrote(e, end-before, done)
	if err != nil || done {
		s.closeWriter(e) // what a full disk took of a piece is found when it is opened again
	}
	return end, done, err
}

// write puts a piece behind what is there.
func (s *Store) write(e *entry, p Piece) error {
	end := e.writer.End()
	if p.Offset > end {
		if p.Offset-p.Lost > end {
			return nil // the node is told where to go on
		}
		if err := e.writer.Skip(p.Offset); err != nil {
			return err
		}
		end = p.Offset
	}
	if have := end - p.Offset; have < int64(len(p.Data)) {
		_, err := e.writer.Write(p.Data[have:])
		return err
	}
	return nil
}

// fileComplete marks a log to which nothing will be added.
const fileComplete = "complete"

// seal makes a log durable before its node hears that it need not keep it.
func (s *Store) seal(e *entry, archive bool) error {
	if e.writer.End() > 0 { // an empty file needs its name alone, which the directory has
		if err := e.writer.Sync(); err != nil {
			return err
		}
	}
	word := s.firstWord(archive)
	dir := filepath.Join(s.dir, e.key.path())
	f, err := os.OpenFile(filepath.Join(dir, fileComplete), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err == nil {
		if _, err = f.WriteString(word); err == nil && word != "" {
			err = f.Sync()
		}
		err = errors.Join(err, f.Close())
	}
	if err == nil {
		err = atomicfile.SyncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("finish log: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e.word = word
	return nil
}

// firstWord is that of a log that has just become complete.
func (s *Store) firstWord(archive bool) string {
	if archive && s.archive != nil {
		return wordDue
	}
	return ""
}

// entry finds or begins a log.
func (s *Store) entry(k Key) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.logs[k]
	if e == nil {
		e = s.look(k)
	}
	return e
}

// perLog is what each log takes beside its bytes: its directory, its marks and sums, and
// the rest of its last block.
const perLog = 16 << 10

// look puts a log into the table as its files are. Called with mu held.
func (s *Store) look(k Key) *entry {
	e := &entry{key: k, touched: s.now()}
	files, err := os.ReadDir(filepath.Join(s.dir, k.path()))
	if err == nil {
		e.bytes, e.touched = perLog, time.Time{}
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			continue
		}
		if filepath.Ext(f.Name()) == ".log" { // the rest is small
			e.bytes += info.Size()
		}
		if f.Name() == fileComplete {
			word, _ := os.ReadFile(filepath.Join(s.dir, k.path(), fileComplete))
			e.complete, e.word = true, string(word) // at worst it is archived once more, or not
		}
		if info.ModTime().After(e.touched) {
			e.touched = info.ModTime()
		}
	}
	s.logs[k] = e
	s.count(e, e.bytes)
	return e
}

// count notes that a log takes so much more. Called with mu held.
func (s *Store) count(e *entry, more int64) {
	s.bytes += more
	if s.users[e.key.User] += more; s.users[e.key.User] == 0 {
		delete(s.users, e.key.User)
	}
}

func (s *Store) isComplete(e *entry) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.complete
}

// wrote notes what was written. A log that is bounded does not grow for ever.
func (s *Store) wrote(e *entry, n int64, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken += n
	if grown := min(n, s.limits().Log+perLog-e.bytes); grown > 0 {
		e.bytes += grown
		s.count(e, grown)
	}
	if n > 0 || done {
		e.touched = s.now()
	}
	e.complete = e.complete || done
}

// maxOpen is how many logs have open files.
const maxOpen = 256

// openWriter opens a log for writing, in place of another one where too many are
// open. Called with the entry's mutex held.
func (s *Store) openWriter(e *entry) error {
	s.mu.Lock()
	surplus := s.use(e)
	floor, gone := e.floor, e.gone
	s.mu.Unlock()
	if surplus != nil && surplus.mu.TryLock() { // else it is at work, and closes another time
		s.closeWriter(surplus)
		surplus.mu.Unlock()
	}
	if e.writer != nil {
		return nil
	}
	dir := filepath.Join(s.dir, e.key.path())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make directory of log: %w", err)
	}
	w, err := logs.Resume(dir, logs.Limits{MaxBytes: s.limits().Log})
	if err != nil {
		return err
	}
	e.writer = w
	s.mu.Lock()
	if e.gone = false; gone || e.bytes == 0 {
		e.bytes += perLog
		s.count(e, perLog)
	}
	s.mu.Unlock()
	return w.Skip(floor)
}

// use notes that a log is used, and gives one that is to be closed for it. Called with mu held.
func (s *Store) use(e *entry) *entry {
	for i, o := range s.open {
		if o == e {
			s.open = append(append(s.open[:i:i], s.open[i+1:]...), e)
			return nil
		}
	}
	s.open = append(s.open, e)
	if len(s.open) <= maxOpen {
		return nil
	}
	return s.open[0]
}

// closeWriter closes a log's files. Called with the entry's mutex held.
func (s *Store) closeWriter(e *entry) {
	if e.writer != nil {
		if err := e.writer.Close(); err != nil {
			s.log.Warn("close log", "error", err)
		}
		e.writer = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, o := range s.open {
		if o == e {
			s.open = append(s.open[:i], s.open[i+1:]...)
			return
		}
	}
}

// Close closes what is open.
func (s *Store) Close() {
	s.mu.Lock()
	list := append([]*entry(nil), s.open...)
	s.mu.Unlock()
	for _, e := range list {
		e.mu.Lock()
		s.closeWriter(e)
		e.mu.Unlock()
	}
}

// Copy is what is kept of a log.
type Copy struct {
	*logs.Log
	Until    time.Time // when its last byte came
	Complete bool      // no more will come
}

// Open opens a log for reading, nil if it is not here. The caller closes it.
func (s *Store) Open(k Key) (*Copy, error) {
	w, at, err := s.whole(k)
	if err != nil {
		return nil, err
	}
	if w != nil {
		c := &Copy{Log: w.Open(), Until: time.UnixMilli(at.came), Complete: true}
		c.Log.Copy = true
		return c, nil
	}
	dir := filepath.Join(s.dir, k.path())
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	e := s.entry(k)
	s.mu.Lock()
	c := &Copy{Until: e.touched, Complete: e.complete}
	s.mu.Unlock()
	c.Log, err = logs.Open(dir, func() bool { return true }) // what is there is all there is, for now
	if err == nil {
		c.Log.Copy = true
	}
	return c, err
}

// OpenArchived opens a log that is not here any more, from another controller or out
// of the archive; nil: it is not there either.
func (s *Store) OpenArchived(ctx context.Context, k Key) (*Copy, error) {
	found, err := s.bringBack(ctx, k)
	if err != nil || !found {
		return nil, err
	}
	return s.Open(k)
}

// State is how far the copy of a log goes.
type State struct {
	Bytes    int64 // on the disk, about
	Until    time.Time
	Complete bool
	Archived bool
}

// State is that of a log; false: there is no copy here.
func (s *Store) State(k Key) (State, bool) {
	if p, at := s.smallLog(k); p != nil {
		return State{Bytes: int64(at.size), Until: time.UnixMilli(at.came), Complete: true, Archived: packWords[at.word].word == wordArchived}, true
	}
	if _, err := os.Stat(filepath.Join(s.dir, k.path())); err != nil {
		return State{}, false
	}
	e := s.entry(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	return State{Bytes: max(0, e.bytes-perLog), Until: e.touched, Complete: e.complete, Archived: e.word == wordArchived}, true
}
