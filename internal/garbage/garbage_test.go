package garbage

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"testing"
)

func TestPercent(t *testing.T) {
	const mib = 1 << 20
	for _, tc := range []struct {
		live, room uint64
		want       int
	}{
		{0, 256 * mib, 100},
		{10 * mib, 256 * mib, 300},
		{100 * mib, 256 * mib, 156},
		{128 * mib, 256 * mib, 100},
		{1000 * mib, 256 * mib, 100},
		{10 * mib, 0, 100},
	} {
		if got := percent(tc.live, tc.room); got != tc.want {
			t.Errorf("%d MiB are left, and room is for %d: %d %%, want %d", tc.live/mib, tc.room/mib, got, tc.want)
		}
	}
}

// TestFollow: each collection is told of, not only the first.
func TestFollow(t *testing.T) {
	var told atomic.Int32
	follow(func() { told.Add(1) })
	for told.Load() < 3 {
		runtime.GC()
	}
}

// TestSparingly: a small process collects less often than by Go's own rule, and one that is told how often does what it is told.
func TestSparingly(t *testing.T) {
	was := debug.SetGCPercent(leastPercent)
	t.Cleanup(func() { debug.SetGCPercent(was) })
	t.Setenv("GOMEMLIMIT", "")
	t.Setenv("GOGC", "100")
	if Sparingly() {
		t.Error("it does not go by GOGC")
	}
	t.Setenv("GOGC", "")
	if !Sparingly() {
		t.Fatal("it goes by Go's own rule")
	}
	now := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	for metrics.Read(now); now[0].Value.Uint64() != mostPercent; metrics.Read(now) {
		runtime.GC()
	}
}
