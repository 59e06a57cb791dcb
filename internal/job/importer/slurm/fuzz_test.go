package slurm

import (
	"testing"
	"time"

	"gbatch/internal/job"
	"gbatch/internal/job/sizes"
	"gbatch/internal/job/times"
)

// FuzzAmounts reads anything as each of Slurm's forms: what is taken is within
// the bounds that the arithmetic on it relies on.
func FuzzAmounts(f *testing.F) {
	for _, s := range []string{"1-02:03:04", "UNLIMITED", "999999999999-0", "16G", "999999999999T", "a100:4", "gpu:a100(S:0-1):4", "n[01-03,7],m1", "n[0-999999999999]",
		"/a:/b:ro+rw,c", "2026-03-02T10:30", "now+2147483648weeks", "teatime", "3PM", "n]1[,2"} {
		f.Add(s)
	}
	now := job.Instant(1_772_443_800_000)
	f.Fuzz(func(t *testing.T, s string) {
		if d, limited, err := times.ParseTimeLimit(s); err == nil && (d < 0 || d > times.MaxDuration || limited != (d > 0)) {
			t.Errorf("time %q is %d", s, d)
		}
		if mib, err := sizes.Parse(s); err == nil && (mib < 0 || mib > 1<<40) {
			t.Errorf("memory %q is %d", s, mib)
		}
		if g, err := ParseGPUs(s); err == nil && (g.Count < 0 || g.Count > 1e12) {
			t.Errorf("GPUs %q are %d", s, g.Count)
		}
		if all, err := Mounts(s); err == nil && len(all) == 0 {
			t.Errorf("%q are no mounts", s)
		}
		at, err := begin(s, Options{Now: now, Zone: time.FixedZone("CET", 3600)})
		if err == nil && len(s) > 4 && s[:4] == "now+" && at < now {
			t.Errorf("%q is %v, before now", s, at)
		}
	})
}
