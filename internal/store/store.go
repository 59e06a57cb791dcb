package store

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/internal/store/floor"
	"gbatch/oci/boot"
)

// formatNumber is the version of keys and values that this program writes. An older
// one is migrated at Open; a newer one is refused.
const formatNumber = 4

// Config is how to open a store.
type Config struct {
	Dir string
	FS  vfs.FS // nil: the disk
	Log *slog.Logger

	// Recent is a file apart from Dir and what lies beside it, in memory if it can be, that has the last mark too: all of
	// that may be put back from an older copy, which looks whole. Empty: none.
	Recent string

	Boot string           // of the machine, in which alone Recent shows that nothing came later; "": the present one
	Now  func() time.Time // nil: the machine's wall clock

	// Applied, if there is one, is told of each record of KindJob that a member has applied, before Apply returns, and of
	// the place of its batch in the common log. The value is only valid during the call, and nil of one that was deleted.
	Applied func(place uint64, n job.Number, value []byte)

	// Mend is what to do where the store is damaged or lacks commits; empty: what there is for a store that nobody else has.
	Mend string
	// Damaged, if there is one, is called when a file of the open store was read and is not as it was written.
	Damaged func(error)

	died func(why string) // of tests: takes the place of the process's end, and must not return
}

// Store is an open store. One goroutine at a time may commit.
type Store struct {
	db    *pebble.DB
	cfg   Config
	epoch uint64
	id    uint64     // of the database; never changes
	mark  floor.Mark // of the last commit
	floor *floor.File

	recent *floor.File // nil: none

	starts  []start       // of this store, the present one last; never changes
	commits atomic.Uint64 // so many are durable

	member  bool                     // it is one of several, which agree on batches
	propose func(batch []byte) error // of the member that leads
	applied atomic.Uint64            // the last batch that they have agreed on and this member has
	shown   int64                    // see Shown; never changes
}

// Open opens or creates the store, checks its format and that it has all that
// was committed, and counts this start. Where something is missing, the error names
// the token that Accept takes.
func Open(cfg Config) (*Store, error) {
	cfg = cfg.onDisk()
	mark, fresh, err := inspect(cfg)
	if err == nil && fresh {
		err = prepare(cfg, mark)
	}
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", cfg.Dir, err)
	}
	s, err := openAs(cfg, mark)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", cfg.Dir, cfg.damaged(err))
	}
	return s, nil
}

// onDisk fills in the file system.
func (c Config) onDisk() Config {
	if c.FS == nil {
		c.FS = lockingDisk{vfs.Default}
	}
	if c.Boot == "" {
		c.Boot, _ = boot.ID() // without one each start is the first one
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// openAs opens a store that goes on from a mark.
func openAs(cfg Config, mark floor.Mark) (s *Store, err error) {
	defer recovered(&err)
	s = &Store{cfg: cfg, id: mark.ID, mark: mark}
	if s.db, err = openDB(cfg.Dir, options(cfg)); err != nil {
		return nil, err
	}
	if err := s.begin(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// ErrInUse says that a program has the store open, and no other can.
var ErrInUse = errors.New("a controller that runs has it open")

// openDB opens the database, or says that another program has.
func openDB(dir string, o *pebble.Options) (*pebble.DB, error) {
	db, err := pebble.Open(dir, o)
	if errors.Is(err, syscall.EAGAIN) {
		err = ErrInUse
	}
	return db, err
}

// blockBytes holds what tells of a key that it is not there, which each submission asks, for some hundred thousand
// jobs: without it that is read from pebble's files again and again. Pebble takes what it has in memory of the last
// commits, up to two tables, off the size that its cache is given.
const (
	tableBytes = 16 << 20
	blockBytes = 64 << 20
)

func options(cfg Config) *pebble.Options {
	o := &pebble.Options{
		FS:                    cfg.FS,
		FormatMajorVersion:    pebble.FormatNewest,
		MemTableSize:          tableBytes,
		L0CompactionThreshold: 4,
		CacheSize:             blockBytes + 2*tableBytes,
		Logger:                quiet{cfg.Log, cfg.died},
		EventListener:         &pebble.EventListener{DataCorruption: (&damage{cfg: cfg}).found},
	}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return o
}

// begin brings the records to the present format, counts this start, and opens the floor, which
// says from then on that there is a commit.
func (s *Store) begin() error {
	format, err := s.meta(keyFormat)
	if err != nil {
		return err
	}
	if format == 1 {
		if err := s.indexEnded(); err != nil {
			return err
		}
	}
	if err := s.countStart(); err != nil {
		return err
	}
	if s.floor, err = floor.Open(s.cfg.FS, s.cfg.floorFile(), s.mark); err != nil || s.cfg.Recent == "" {
		return err
	}
	if s.recent, err = floor.OpenHere(s.cfg.FS, s.cfg.Recent, s.mark, s.cfg.Boot); err != nil && s.cfg.Log != nil { // the store is whole without it
		s.cfg.Log.Warn("the next start cannot tell whether the directory is an older copy, and will leave out numbers of jobs", "error", err)
	}
	return nil
}

// countStart reads the epoch and writes that of this start.
func (s *Store) countStart() error {
	epoch, err := s.meta(keyEpoch)
	if err != nil {
		return err
	}
	s.epoch = epoch + 1
	b := s.db.NewBatch()
	err = errors.Join(b.Set(keyFormat, strconv.AppendUint(nil, formatNumber, 10), nil),
		b.Set(keyEpoch, strconv.AppendUint(nil, s.epoch, 10), nil), s.noteStart(b), s.beginWitnesses(b, s.mark.Count == 0))
	if err == nil && !s.member {
		err = errors.Join(b.Delete(keyApplied, nil), b.Delete(keyShown, nil), s.leaveOut(b)) // what others agreed on goes another way from here on
	}
	if err != nil {
		return errors.Join(err, b.Close())
	}
	return s.commit(b)
}

func (s *Store) meta(k []byte) (uint64, error) {
	v, ok, err := s.get(k)
	if err != nil || !ok {
		return 0, err
	}
	n, err := strconv.ParseUint(string(v), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", k, err)
	}
	return n, nil
}

// Epoch counts the starts on this store, 1 for the first.
func (s *Store) Epoch() uint64 { return s.epoch }

// Close releases the store. Commits in flight must have returned.
func (s *Store) Close() error {
	err := s.db.Close()
	for _, f := range []*floor.File{s.floor, s.recent} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// Load gives every record that the controller needs at start, by key, and all but the
// last one of history as they are at one moment. The record's value is only valid during
// the call.
func (s *Store) Load(take func(state.Record) error) error { return s.load(take, state.KindJob) }

// LoadBeside is Load for who knows the records of KindJob.
func (s *Store) LoadBeside(take func(state.Record) error) error { return s.load(take) }

func (s *Store) load(take func(state.Record) error, more ...state.Kind) (err error) {
	defer closed(&err)
	take = named(take)
	now := s.db.NewSnapshot()
	every := func(r state.Record) (bool, error) { return true, take(r) }
	kinds := []state.Kind{state.KindNode, state.KindPast, state.KindUsage, state.KindStored, state.KindWindow, state.KindFloor, state.KindThere, state.KindTasks}
	for _, k := range append(kinds, more...) {
		in := &pebble.IterOptions{LowerBound: []byte{byte(k)}, UpperBound: after([]byte{byte(k)})}
		if err := walk(now, in, false, every); err != nil {
			return errors.Join(err, now.Close())
		}
	}
	return errors.Join(s.lastHistory(take), now.Close())
}

// lastHistory gives the record of the highest number in history, so that no
// number is given twice.
func (s *Store) lastHistory(take func(state.Record) error) error {
	return s.Newest(state.KindHistory, func(r state.Record) (bool, error) { return false, take(r) })
}

func (s *Store) scan(prefix []byte, take func(state.Record) error) error {
	return s.walk(prefix, after(prefix), false, func(r state.Record) (bool, error) { return true, take(r) })
}

// Commit makes the records durable, all or none.
func (s *Store) Commit(rs []state.Record) error {
	if len(rs) == 0 {
		return nil
	}
	b := s.db.NewBatch()
	for _, r := range rs {
		var err error
		if r.Value == nil {
			err = b.Delete(key(r), nil)
		} else {
			err = b.Set(key(r), value(r), nil)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("write to store: %w", err), b.Close())
		}
	}
	if err := s.commit(b); err != nil {
		return fmt.Errorf("write to store: %w", err)
	}
	return nil
}

// commit makes a batch durable, here or on most members.
func (s *Store) commit(b *pebble.Batch) error {
	switch {
	case !s.member:
		return s.apply(b, nil)
	case s.propose == nil:
		return errors.Join(ErrFollows, b.Close())
	}
	err := s.propose(b.Repr())
	return errors.Join(err, b.Close())
}

// apply makes a batch durable here, together with the mark that counts it and what more says.
func (s *Store) apply(b *pebble.Batch, more func(*pebble.Batch) error) error {
	next := s.mark.Next(b.Repr())
	err := errors.Join(b.Set(keyMark, next.Encode(), nil), b.Set(keyTime, strconv.AppendInt(nil, s.cfg.Now().Unix(), 10), nil), testify(b, next.Count))
	if err == nil && more != nil {
		err = more(b)
	}
	if err != nil {
		return errors.Join(err, b.Close())
	}
	if err := b.Commit(pebble.Sync); err != nil {
		return err
	}
	s.mark = next
	s.commits.Store(next.Count)
	if s.floor == nil {
		return nil // of a start, which tells nobody before it is open
	}
	if s.recent != nil {
		_ = s.recent.Note(next) // the store is whole without it
	}
	return s.floor.Note(next)
}

// Get reads one record's value: kind, job and, for those that have them,
// sequence or name must be set. False: there is none.
func (s *Store) Get(r state.Record) ([]byte, bool, error) { return s.get(key(r)) }

func (s *Store) get(k []byte) (value []byte, ok bool, err error) {
	defer closed(&err)
	v, c, err := s.db.Get(k)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read from store: %w", err)
	}
	out := append([]byte{}, v...)
	return out, true, c.Close()
}

// NewestOf gives the records of a kind of one job, the last first, while take asks
// for more.
func (s *Store) NewestOf(kind state.Kind, n job.Number, take func(state.Record) (more bool, err error)) error {
	prefix := key(state.Record{Kind: kind, Job: n})[:9]
	return s.walk(prefix, after(prefix), true, take)
}

// All gives the records of one kind by key. The record's value is only valid
// during the call.
func (s *Store) All(kind state.Kind, take func(state.Record) error) error {
	return s.scan([]byte{byte(kind)}, named(take))
}

// named has the error of a record that cannot be used say which one it is and what
// to do.
func named(take func(state.Record) error) func(state.Record) error {
	return func(r state.Record) error {
		if err := take(r); err != nil {
			return fmt.Errorf("%s: %w; restore a backup, or take the record out by `gctld fsck --quarantine`", r.Where(), err)
		}
		return nil
	}
}

// Newest gives the records of one kind from the last key back, until take says
// that it has enough. The record's value is only valid during the call.
func (s *Store) Newest(kind state.Kind, take func(state.Record) (more bool, err error)) error {
	prefix := []byte{byte(kind)}
	return s.walk(prefix, after(prefix), true, take)
}

// Prune deletes the records of a kind with a sequence alone that are older than
// from. It need not be durable at once: what comes back is pruned again.
func (s *Store) Prune(kind state.Kind, from uint64) error {
	low, high := key(state.Record{Kind: kind}), key(state.Record{Kind: kind, Seq: from})
	b := s.db.NewBatch()
	err := b.DeleteRange(low, high, nil)
	switch {
	case err != nil:
	case s.member:
		err = s.commit(b)
	default:
		err = b.Commit(pebble.NoSync)
	}
	if err != nil {
		return fmt.Errorf("prune store: %w", err)
	}
	return nil
}

// NumberOf finds a job in history by its UUID.
func (s *Store) NumberOf(uuid [16]byte) (job.Number, bool, error) {
	v, ok, err := s.get(key(state.Record{Kind: state.KindUUID, Name: string(uuid[:])}))
	if err != nil || !ok {
		return 0, false, err
	}
	r, err := record(append([]byte{byte(state.KindUUID)}, uuid[:]...), v)
	return r.Job, err == nil, err
}

// Metrics are pebble's own.
func (s *Store) Metrics() *pebble.Metrics { return s.db.Metrics() }

// quiet keeps pebble's chatter at debug level.
type quiet struct {
	log  *slog.Logger
	died func(string)
}

func (q quiet) Infof(f string, a ...any) {
	if q.log != nil {
		q.log.Debug("store", "event", fmt.Sprintf(f, a...))
	}
}

func (q quiet) Errorf(f string, a ...any) {
	if q.log != nil {
		q.log.Error("store", "event", fmt.Sprintf(f, a...))
	}
}

// Fatalf is called by pebble when it cannot go on: everything acknowledged is
// on disk, and a restart recovers it.
func (q quiet) Fatalf(f string, a ...any) {
	q.Errorf(f, a...)
	if q.died != nil {
		q.died(fmt.Sprintf(f, a...))
	}
	panic("store cannot go on: " + fmt.Sprintf(f, a...))
}

// Backup makes a copy of the store in a new directory on the same disk: all
// that was committed when it was called, while commits go on. Most of it are
// links to files that never change, so it is quick and takes little room.
func (s *Store) Backup(dir string) (err error) {
	defer closed(&err)
	if err := s.db.Checkpoint(dir, pebble.WithFlushedWAL()); err != nil {
		return fmt.Errorf("copy store to %s: %w", dir, err)
	}
	return nil
}

// Restored makes a copy the store that goes on: it gets the record that says
// so, and later starts count from the epoch on. The epoch must be above that of
// any start that the copy does not know of, so that nodes take what is told
// them for changes; the time in seconds is.
func (s *Store) Restored(epoch uint64, r state.Record) error {
	b := s.db.NewBatch()
	err := errors.Join(b.Set(key(r), value(r), nil), b.Set(keyEpoch, strconv.AppendUint(nil, max(epoch, s.epoch), 10), nil))
	if err != nil {
		return errors.Join(err, b.Close())
	}
	if err := s.commit(b); err != nil {
		return fmt.Errorf("write to store: %w", err)
	}
	return nil
}
