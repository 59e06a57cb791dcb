package loop

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestClockSteps: setting the wall clock, either way and by however much, makes no
// time pass that did not; the clock agrees with it again after some time, and both
// are said once.
func TestClockSteps(t *testing.T) {
	for _, step := range []time.Duration{3 * time.Hour, -3 * time.Hour, 5 * time.Minute, -time.Minute, 100 * time.Millisecond} {
		t.Run(step.String(), func(t *testing.T) {
			start := time.UnixMilli(1_000_000_000)
			var steady, set time.Duration
			var said bytes.Buffer
			c := newClock(func() (time.Time, time.Duration) { return start.Add(steady + set), steady }, slog.New(slog.NewTextHandler(&said, nil)))
			last, began := c.now(), c.now()
			set = step
			pass := func(for_ time.Duration) {
				for range 600 {
					steady += for_ / 600
					now := c.now()
					if now < last {
						t.Fatalf("it went back from %d to %d", last, now)
					}
					last = now
				}
			}
			pass(time.Hour)
			passed := time.Duration(last-began) * time.Millisecond
			if most := time.Hour / slew; (passed - time.Hour).Abs() > most+time.Second {
				t.Errorf("in an hour %s passed", passed)
			}
			pass(step.Abs() * slew)
			if want := start.Add(steady + set).UnixMilli(); (int64(last)-want) > 10 || want-int64(last) > 10 {
				t.Errorf("it is %d at last, want the wall clock's %d", last, want)
			}
			want := 2
			if step.Abs() < clockStep {
				want = 0
			}
			if got := strings.Count(said.String(), "\n"); got != want {
				t.Errorf("%d lines were logged, want %d:\n%s", got, want, said.String())
			}
		})
	}
}

// TestClockOverRestarts: a step of the wall clock while no controller runs makes no time
// pass either, and the time that passed meanwhile does; after a boot the wall clock counts, but time
// does not go back.
func TestClockOverRestarts(t *testing.T) {
	start := time.UnixMilli(1_000_000_000)
	for name, tc := range map[string]struct {
		step time.Duration // of the wall clock
		boot string
		want time.Duration // that passed
	}{
		"nothing":             {0, "a", time.Minute},
		"forward":             {3 * time.Hour, "a", time.Minute},
		"back":                {-3 * time.Hour, "a", time.Minute},
		"booted":              {0, "b", time.Minute},
		"booted with no time": {-1000 * time.Hour, "b", 0},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "clock")
			log := slog.New(slog.DiscardHandler)
			steady, set := 50*time.Hour, time.Duration(0)
			read := func() (time.Time, time.Duration) { return start.Add(steady - 50*time.Hour + set), steady }
			c := OpenClockBy(path, "a", read, log)
			began := c.now()
			c.keep()
			steady += time.Minute
			set = tc.step
			if tc.boot != "a" {
				wall := start.Add(time.Minute + set)
				read = func() (time.Time, time.Duration) { return wall, time.Second }
			}
			c = OpenClockBy(path, tc.boot, read, log)
			if passed := time.Duration(c.now()-began) * time.Millisecond; passed != tc.want {
				t.Errorf("%s passed, want %s", passed, tc.want)
			}
		})
	}
}

// TestDamagedClock changes each byte of what a clock has kept: the next one goes on from there all the same, or
// from the machine's clock, and says so.
func TestDamagedClock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clock")
	wall := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	read := func() (time.Time, time.Duration) { return wall, 90 * time.Hour }
	first := OpenClockBy(path, "boot", read, slog.New(slog.DiscardHandler))
	first.keep()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := range whole {
		changed := bytes.Clone(whole)
		changed[at] ^= 1
		if err := os.WriteFile(path, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		c := OpenClockBy(path, "boot", read, slog.New(slog.NewTextHandler(&said, nil)))
		if now := c.Now(); now != first.Now() || said.Len() == 0 {
			t.Errorf("byte %d: it shows %d, and would have %d; said: %q", at, now, first.Now(), said.String())
		}
	}
}
