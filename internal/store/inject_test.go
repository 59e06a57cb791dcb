package store

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

var (
	injected = flag.Int("store.faults", faultRuns, "runs of each kind of fault in TestFaultsAnywhere")
	seeded   = flag.Uint64("store.seed", 0, "repeats a run of TestFaultsAnywhere; 0: draw one")
)

// life is one life of a controller's store: jobs are committed one by one until all are, or
// a fault ends it. It is in a goroutine of its own, as what ends the database ends that.
type life struct {
	jobs  int
	acked atomic.Int64
	why   atomic.Pointer[string]

	bad   atomic.Bool   // a call has failed
	hit   chan struct{} // closed when a call did not do what it should: from then on nothing is waited for
	first sync.Once
	turns atomic.Bool // a new log is begun
	ended chan struct{}
	once  sync.Once
}

func (l *life) end(why string) {
	l.why.CompareAndSwap(nil, &why)
	l.once.Do(func() { close(l.ended) })
}

// live runs a life to its end. What is left of the process is abandoned, as by a kill.
func (l *life) live(fs vfs.FS) {
	go l.run(fs) // ends with the life, or hangs in a database that has ended
	<-l.ended
}

func newLife(jobs int) *life {
	return &life{jobs: jobs, ended: make(chan struct{}), hit: make(chan struct{})}
}

func (l *life) run(fs vfs.FS) {
	defer l.end("done")
	s, err := Open(Config{Dir: "db", FS: fs, died: func(why string) {
		l.end(why)
		runtime.Goexit()
	}})
	if err != nil {
		l.end(err.Error())
		return
	}
	for n := 1; n <= l.jobs; n++ {
		if err := s.Commit([]state.Record{{Kind: state.KindJob, Job: job.Number(n), Value: filled(job.Number(n))}}); err != nil {
			l.end(err.Error())
			return
		}
		select {
		case <-l.ended:
			return // nobody is told any more
		default:
			l.acked.Store(int64(n))
		}
		if n%(l.jobs/4) == 0 {
			l.flush(s, n == l.jobs/2)
		}
	}
	l.end("done")
	select {
	case <-l.hit: // it is left as it is, as by a kill
	default:
		_ = s.Close()
	}
}

// flush has what is in the log go into files, and files be joined, unless a call has failed: the
// database tries that again for ever, and a log that could not be written ends the process when
// it is closed.
func (l *life) flush(s *Store, join bool) {
	if l.bad.Load() {
		return
	}
	done := make(chan struct{})
	go func() { // ends with the work, or hangs as that does
		defer close(done)
		l.turns.Store(true)
		flushed, err := s.db.AsyncFlush()
		if err == nil {
			<-flushed
		}
		if join {
			_ = s.db.Compact(context.Background(), []byte{0}, []byte{0xff}, false)
		}
		l.turns.Store(false)
	}()
	select {
	case <-done:
	case <-l.hit:
	case <-l.ended:
	}
}

func (l *life) strike() { l.first.Do(func() { close(l.hit) }) }

// still has a call to the disk wait for ever when its life was ended by a fault: a database that is
// left so tries again and again, and hundreds of them would take all processors.
func (l *life) still() {
	select {
	case <-l.hit:
	default:
		return
	}
	select {
	case <-l.ended:
		select {}
	default:
	}
}

// disk is the file system of a life, of which inject says what fails.
func (l *life) disk(fs vfs.FS, inject func(errorfs.Op) error) vfs.FS {
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		l.still()
		return inject(op)
	}))
}

// fail is the error of a call; where the database would end the process for it, the life ends.
func (l *life) fail(op errorfs.Op, err error) error {
	l.bad.Store(true)
	l.strike()
	l.still()
	if l.turns.Load() && !strings.HasSuffix(op.Path, ".sst") && !strings.Contains(op.Path, "MANIFEST") {
		l.end("no new log: " + err.Error())
		select {} // no test survives what the database does there
	}
	return err
}

// mutates says whether an operation changes what is on the disk.
func mutates(op errorfs.Op) bool {
	return op.Kind.ReadOrWrite() == errorfs.OpIsWrite
}

// spoiled is a file system on which one write does not do what it says.
type spoiled struct {
	vfs.FS
	writes atomic.Int64
	at     int64
	spoil  func([]byte) []byte // what is written of it
	struck func()
}

func (f *spoiled) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.wrap(f.FS.Create(name, c))
}

func (f *spoiled) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return f.wrap(f.FS.OpenReadWrite(name, c, o...))
}

func (f *spoiled) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.wrap(f.FS.ReuseForWrite(old, name, c))
}

func (f *spoiled) wrap(file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &spoiledFile{file, f}, nil
}

type spoiledFile struct {
	vfs.File
	fs *spoiled
}

func (f *spoiledFile) Write(p []byte) (int, error) {
	if f.fs.writes.Add(1) != f.fs.at {
		return f.File.Write(p)
	}
	f.fs.struck()
	_, err := f.File.Write(f.fs.spoil(p))
	return len(p), err
}

func (f *spoiledFile) WriteAt(p []byte, off int64) (int, error) {
	if f.fs.writes.Add(1) != f.fs.at {
		return f.File.WriteAt(p, off)
	}
	f.fs.struck()
	_, err := f.File.WriteAt(f.fs.spoil(p), off)
	return len(p), err
}

// TestFaultsAnywhere: whatever one call to the disk does, the error that it gives, the power that
// goes before it, or what it writes in place of what it was given, every job that was
// acknowledged is there at the next start. Only where the disk keeps other bytes than it took
// may the start be refused instead, or the reading of a record, by a sentence.
func TestFaultsAnywhere(t *testing.T) {
	const jobs = 24
	seed := *seeded
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("repeat it by -store.seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))

	// How many calls a life without faults has.
	ops, writes := new(atomic.Int64), &spoiled{FS: vfs.NewMem()}
	newLife(jobs).live(errorfs.Wrap(writes, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if mutates(op) {
			ops.Add(1)
		}
		return nil
	})))

	failing := func(err error, on bool) func(t *testing.T, at int64) {
		return func(t *testing.T, at int64) {
			disk, n := vfs.NewCrashableMem(), new(atomic.Int64)
			l := newLife(jobs)
			l.live(l.disk(disk, func(op errorfs.Op) error {
				if !mutates(op) {
					return nil
				}
				k := n.Add(1)
				if k != at && (!on || k < at) {
					return nil
				}
				return l.fail(op, err)
			}))
			for _, unsynced := range []int{0, 50, 100} {
				there(t, disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced, RNG: rng}), l, l.acked.Load(), false)
			}
		}
	}
	cut := func(t *testing.T, at int64) {
		disk, n := vfs.NewCrashableMem(), new(atomic.Int64)
		type left struct {
			disk  *vfs.MemFS
			acked int64
		}
		var then atomic.Pointer[left]
		own := rand.New(rand.NewPCG(rng.Uint64(), 1)) // as the call may be one that comes after the life
		l := newLife(jobs)
		var once sync.Once
		l.live(errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if mutates(op) && n.Add(1) >= at {
				once.Do(func() {
					acked := l.acked.Load()
					then.Store(&left{disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: own.IntN(101), RNG: own}), acked})
				})
			}
			return nil
		})))
		if c := then.Load(); c != nil {
			there(t, c.disk, l, c.acked, false)
		}
	}
	spoiling := func(spoil func([]byte) []byte) func(t *testing.T, at int64) {
		return func(t *testing.T, at int64) {
			disk := vfs.NewCrashableMem()
			l := newLife(jobs)
			l.live(l.disk(&spoiled{FS: disk, at: at, spoil: spoil, struck: l.strike}, func(errorfs.Op) error { return nil }))
			there(t, disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rng}), l, l.acked.Load(), true)
		}
	}
	kinds := map[string]struct {
		of  int64
		run func(t *testing.T, at int64)
	}{
		"error":            {ops.Load(), failing(syscall.EIO, false)},
		"errors from then": {ops.Load(), failing(syscall.EIO, true)},
		"full disk":        {ops.Load(), failing(syscall.ENOSPC, true)},
		"full for once":    {ops.Load(), failing(syscall.ENOSPC, false)},
		"power cut":        {ops.Load(), cut},
		"lost write":       {writes.writes.Load(), spoiling(func([]byte) []byte { return nil })},
		"torn write":       {writes.writes.Load(), spoiling(func(p []byte) []byte { return p[:len(p)/2] })},
		"flipped bit": {writes.writes.Load(), func(t *testing.T, at int64) {
			own := rand.New(rand.NewPCG(rng.Uint64(), 1)) // as above
			spoiling(func(p []byte) []byte {
				q := append([]byte{}, p...)
				if len(q) > 0 {
					q[own.IntN(len(q))] ^= 1 << own.IntN(8)
				}
				return q
			})(t, at)
		}},
	}
	for _, name := range slices.Sorted(maps.Keys(kinds)) { // so that a seed draws the same
		kind := kinds[name]
		t.Run(name, func(t *testing.T) {
			for range *injected {
				at := 1 + rng.Int64N(kind.of)
				kind.run(t, at)
				if t.Failed() {
					t.Fatalf("at call %d of %d", at, kind.of)
				}
			}
		})
	}
}

// there opens what is left on a disk and compares it with what was acknowledged.
func there(t *testing.T, disk vfs.FS, l *life, acked int64, mayRefuse bool) {
	t.Helper()
	cfg := Config{Dir: "db", FS: disk}
	found := map[job.Number]bool{}
	s, err := Open(cfg)
	if err == nil {
		err = errors.Join(s.Load(func(r state.Record) error {
			if r.Kind != state.KindJob {
				return nil
			}
			if string(r.Value) != string(filled(r.Job)) {
				return fmt.Errorf("job %d is %q", r.Job, r.Value)
			}
			found[r.Job] = true
			return nil
		}), s.Close())
	}
	switch {
	case err != nil && !mayRefuse:
		t.Errorf("after %q the store is refused: %v", *l.why.Load(), err)
		return
	case err != nil:
		var loss *lossError
		if !errors.As(err, &loss) && !strings.Contains(err.Error(), "gctld restore") {
			t.Errorf("it is refused without a word on what to do: %v", err)
		}
		return
	}
	for n := job.Number(1); int64(n) <= acked; n++ {
		if !found[n] {
			t.Errorf("after %q, with %d jobs acknowledged, job %d is not there, and nothing is said", *l.why.Load(), acked, n)
			return
		}
	}
	if most := acked + 1; int64(len(found)) > most {
		t.Errorf("%d jobs were acknowledged, and %d are there", acked, len(found))
	}
}
