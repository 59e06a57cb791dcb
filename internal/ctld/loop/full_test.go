package loop

import (
	"log/slog"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"gbatch/internal/control"
	"gbatch/internal/ctld/meter"
	"gbatch/internal/ctld/site"
	"gbatch/internal/node"
	"gbatch/internal/store"
)

// filling is a disk that can be full.
type filling struct {
	vfs.FS
	full atomic.Bool
}

func (f *filling) GetDiskUsage(string) (vfs.DiskUsage, error) {
	if f.full.Load() {
		return vfs.DiskUsage{}, nil
	}
	return vfs.DiskUsage{AvailBytes: math.MaxInt64}, nil
}

// TestFullDiskRests: while the disk is full nothing is decided, whatever is due; the loop looks at the disk
// now and then, and does not turn without a pause.
func TestFullDiskRests(t *testing.T) {
	disk, log := &filling{FS: vfs.NewMem()}, slog.New(slog.DiscardHandler)
	st, err := store.Open(store.Config{Dir: "db", FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	rules, err := site.Default().Rules()
	if err != nil {
		t.Fatal(err)
	}
	ctl, err := control.New(rules, 1)
	if err != nil {
		t.Fatal(err)
	}
	passed := time.Hour
	clock := newClock(func() (time.Time, time.Duration) { return time.UnixMilli(0).Add(passed), passed }, log)
	now := clock.Now()
	if err := ctl.Loaded(now); err != nil {
		t.Fatal(err)
	}
	control.Apply(ctl, now, control.NodeSync{Name: "n1", Instance: "i", Boot: "b", Hash: "h", Inventory: &node.Inventory{Hostname: "n1", Cluster: 1, CPUs: 1, MemBytes: 1 << 30}})
	l, err := New(Config{Controller: ctl, Store: st, Clock: clock, Meters: meter.New(), Reserve: func() uint64 { return 1 << 20 }, Log: log}, now)
	if err != nil {
		t.Fatal(err)
	}
	disk.full.Store(true)
	passed += time.Hour // the node is silent for long
	if err := l.turn(nil); err != nil {
		t.Fatal(err)
	}
	if due := ctl.NextTick(l.now); due == 0 || due > l.now {
		t.Fatalf("nothing is due at %d, but at %d", l.now, due)
	}
	if rest := l.untilNext(); rest <= 0 {
		t.Errorf("with a full disk the loop turns again after %s", rest)
	}
	disk.full.Store(false)
	if err := l.turn(nil); err != nil {
		t.Fatal(err)
	}
	if n := l.View().Node("n1"); n == nil || !n.Lost {
		t.Errorf("with room again, what was due is not done: %+v", n)
	}
}
