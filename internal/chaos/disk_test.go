package chaos

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// disk is the controller's. What was not synced is lost when its power is cut.
type disk struct {
	vfs.FS
	mem    *vfs.MemFS
	slow   *atomic.Int64 // how long a sync takes longer
	full   *atomic.Int64 // by so many faults
	syncs  *atomic.Int64 // that time passed for
	left   atomic.Bool   // by the process that wrote to it
	unsafe bool          // a planted bug: nothing is synced
}

func newDisk() *disk {
	mem := vfs.NewCrashableMem()
	return &disk{FS: mem, mem: mem, slow: new(atomic.Int64), full: new(atomic.Int64), syncs: new(atomic.Int64)}
}

// after is the disk after the end of who wrote to it, with all or nothing of what was not synced.
func (d *disk) after(unsynced int) *disk {
	mem := d.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced, RNG: rand.New(rand.NewPCG(1, 1))})
	return &disk{FS: mem, mem: mem, slow: d.slow, full: d.full, syncs: d.syncs, unsafe: d.unsafe}
}

// empty is another disk in its place.
func (d *disk) empty() *disk {
	out := newDisk()
	out.slow, out.full, out.syncs, out.unsafe = d.slow, d.full, d.syncs, d.unsafe
	return out
}

// flip turns a bit of a file of the store around, and says of which kind of file. Nobody has it open.
func (d *disk) flip(r *rand.Rand) string {
	kinds := []string{".sst", ".log", "MANIFEST", "mark"}
	kind, at := kinds[r.IntN(len(kinds))], 1+r.IntN(8)
	path := "db.mark"
	if kind != "mark" {
		names, _ := d.mem.List("db")
		slices.Sort(names)
		for _, n := range names { // the last one
			if strings.Contains(n, kind) {
				path = "db/" + n
			}
		}
	}
	f, err := d.mem.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return "nothing"
	}
	defer f.Close()
	st, err := f.Stat()
	b := make([]byte, 1)
	off := st.Size() * int64(at) / 9
	if _, err2 := f.ReadAt(b, off); err != nil || err2 != nil {
		return "nothing"
	}
	b[0] ^= 1 << r.IntN(8)
	if _, err := f.WriteAt(b, off); err != nil {
		panic(err)
	}
	if err := f.Sync(); err != nil {
		panic(err)
	}
	return kind
}

// syncTakes is how long a sync takes at least, so that others arrive meanwhile.
const syncTakes = 2 * time.Millisecond

func (d *disk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	u := vfs.DiskUsage{AvailBytes: 1 << 40, TotalBytes: 1 << 41}
	if d.full.Load() > 0 {
		u.AvailBytes = 1 << 20
	}
	return u, nil
}

func (d *disk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, c)
	return d.wrap(name, f, err)
}

func (d *disk) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := d.FS.OpenReadWrite(name, c, o...)
	return d.wrap(name, f, err)
}

func (d *disk) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.ReuseForWrite(old, name, c)
	return d.wrap(name, f, err)
}

func (d *disk) wrap(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	// Copies of a store are written while others wait for a lock.
	return &file{File: f, disk: d, log: strings.HasPrefix(name, "db/") && strings.HasSuffix(name, ".log")}, nil
}

// file is one on it. Time passes only at syncs of the database's log, on which commits wait: at others
// the database holds locks, and what waits for a lock keeps the bubble's clock from going on.
// The end of a log takes none either: when the next one is begun depends on the database's own chance.
type file struct {
	vfs.File
	disk  *disk
	log   bool
	fresh atomic.Int64 // bytes since the last sync
}

// logEnd is more than what ends a log takes, and less than a commit does.
const logEnd = 20

func (f *file) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	f.fresh.Add(int64(n))
	return n, err
}

func (f *file) Sync() error     { return f.sync(f.File.Sync) }
func (f *file) SyncData() error { return f.sync(f.File.SyncData) }

func (f *file) SyncTo(length int64) (full bool, err error) {
	err = f.sync(func() error { full, err = f.File.SyncTo(length); return err })
	return full, err
}

func (f *file) sync(do func() error) error {
	if fresh := f.fresh.Swap(0); f.log && fresh > logEnd && !f.disk.left.Load() {
		f.disk.syncs.Add(1)
		_ = sleep(context.Background(), syncTakes+time.Duration(f.disk.slow.Load()))
	}
	if f.disk.unsafe {
		return nil
	}
	return do()
}
