package accounting

import (
	"cmp"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestDaysSumUpToTheCharges: whatever starts and ends, and however often the
// ledger is stored and loaded in between, each day has what was held on it, by
// model and cluster, to the millisecond, and all days together have the totals.
func TestDaysSumUpToTheCharges(t *testing.T) {
	type place struct {
		day     int64
		project string
		model   string
		cluster int
	}
	rapid.Check(t, func(t *rapid.T) {
		l := newLedgerIn(t)
		stored := map[place]Slice{}
		keep := func() {
			_, days := l.Changed()
			for _, d := range days {
				for _, s := range d.Slices {
					at := place{d.Day, d.Project, s.Model, s.Cluster}
					if _, twice := stored[at]; twice {
						t.Fatalf("day %+v is closed twice", at)
					}
					stored[at] = s
				}
			}
		}
		want := map[place]Amount{}
		var open []Charge
		now, starts := int64(5*hour), int64(0)
		end := func(i int) {
			c := open[i]
			c.End = now
			if err := l.End(c); err != nil {
				t.Fatal(err)
			}
			rate := l.Rate(c)
			for at := c.Start; at < c.End; at = RollAt(at) {
				k := place{at / DayMS, c.Project, c.Model, c.Cluster}
				want[k] = want[k].Plus(rate.Over(min(RollAt(at), c.End) - at))
			}
			open = slices.Delete(open, i, i+1)
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now += rapid.Int64Range(0, 30*hour).Draw(t, "passes")
			switch rapid.SampledFrom([]string{"begin", "begin", "end", "roll", "restart"}).Draw(t, "step") {
			case "begin":
				c := Charge{
					Project: rapid.SampledFrom([]string{"p", "q"}).Draw(t, "project"), User: "u", Start: now,
					Model:    rapid.SampledFrom([]string{"", "H100"}).Draw(t, "model"),
					Cluster:  rapid.IntRange(1, 2).Draw(t, "cluster"),
					MilliGPU: rapid.Int64Range(0, 8000).Draw(t, "gpu"), MilliCPU: 1000, MemMiB: 1024,
				}
				l.CountStart(c, 7)
				starts++
				if err := l.Begin(c); err != nil {
					t.Fatal(err)
				}
				open = append(open, c)
			case "end":
				if len(open) > 0 {
					end(rapid.IntRange(0, len(open)-1).Draw(t, "which"))
				}
			case "roll":
				l.Roll(now, 1)
			case "restart":
				keep()
				l = restarted(t, l, open)
			}
			if rapid.Bool().Draw(t, "store") {
				keep()
			}
		}
		for len(open) > 0 {
			end(0)
		}
		keep()
		for _, d := range l.Days(now) {
			for _, s := range d.Slices {
				at := place{d.Day, d.Project, s.Model, s.Cluster}
				sum := stored[at]
				sum.Add(s)
				stored[at] = sum
			}
		}
		counted := int64(0)
		for at, s := range stored {
			counted += s.Starts
			if s.Used != want[at] || s.WaitMS != 7*s.Starts {
				t.Fatalf("%+v has %+v, want %+v", at, s, want[at])
			}
			delete(want, at)
		}
		for at, w := range want {
			if w != (Amount{}) {
				t.Fatalf("%+v of %+v is missing", w, at)
			}
		}
		if counted != starts {
			t.Fatalf("%d starts are counted, want %d", counted, starts)
		}
	})
}

func newLedgerIn(t *rapid.T) *Ledger {
	l, err := New(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestDaysOfARunningJob: a day is told of while a job runs, and closed once.
func TestDaysOfARunningJob(t *testing.T) {
	l := newLedger(t, DefaultConfig())
	c := Charge{Project: "p", User: "u", Model: "H100", Cluster: 2, MilliGPU: 2000, Start: 22 * hour}
	if err := l.Begin(c); err != nil {
		t.Fatal(err)
	}
	day := func(n, hours int64) Day {
		return Day{Day: n, Project: "p", User: "u", Slices: []Slice{{Model: "H100", Cluster: 2, Used: Amount{MilliGPU: 2000 * hours * hour, Billed: 2000 * hours * hour}}}}
	}
	if diff := gocmp.Diff([]Day{day(0, 2), day(1, 24), day(2, 1)}, l.Days(49*hour)); diff != "" {
		t.Errorf("before it is closed (-want +got):\n%s", diff)
	}
	if l.Roll(49*hour, 10) {
		t.Error("one row is more than ten")
	}
	_, closed := l.Changed()
	if diff := gocmp.Diff([]Day{day(0, 2), day(1, 24)}, closed); diff != "" {
		t.Errorf("closed (-want +got):\n%s", diff)
	}
	c.End = 50 * hour
	if err := l.End(c); err != nil {
		t.Fatal(err)
	}
	l.CountEnd(c, "FINISHED")
	rest := day(2, 2)
	rest.Slices[0].Ended = map[string]int64{"FINISHED": 1}
	if diff := gocmp.Diff([]Day{rest}, l.Days(50*hour)); diff != "" {
		t.Errorf("open (-want +got):\n%s", diff)
	}
}

// TestMonthlyBudget: a budget of a month is whole again in the next.
func TestMonthlyBudget(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Tree = Tree{"p": {Shares: 1, Budget: 600, Monthly: true}}
	l := newLedger(t, cfg)
	at := func(month time.Month, d, h int) int64 {
		return time.Date(2026, month, d, h, 0, 0, 0, time.UTC).UnixMilli()
	}
	c := Charge{Project: "p", User: "u", MilliGPU: 1000, Start: at(time.January, 31, 14)}
	if err := l.Begin(c); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		now  int64
		used int64
	}{
		{at(time.January, 31, 22), 480}, {at(time.February, 1, 0), 0}, {at(time.February, 1, 1), 60}, {at(time.February, 1, 10), 600}, {at(time.March, 9, 0), 8 * 1440},
	} {
		b, over := l.Shares(tc.now).OverBudget("p")
		if want := (Budget{Account: "p", UsedMinutes: tc.used, MaxMinutes: 600, Monthly: true}); b != want || over != (tc.used >= 600) {
			t.Errorf("at %s: %+v, over %t, want %d used", time.UnixMilli(tc.now).UTC(), b, over, tc.used)
		}
	}
}

// TestWrongClockIsBounded: a clock that was centuries off costs no more than
// the days of one.
func TestWrongClockIsBounded(t *testing.T) {
	l := newLedger(t, DefaultConfig())
	if err := l.Begin(Charge{Project: "p", User: "u", MilliGPU: 1000}); err != nil {
		t.Fatal(err)
	}
	days := l.Days(400 * 365 * DayMS)
	var sum Amount
	for _, d := range days {
		sum = sum.Plus(d.Slices[0].Used)
	}
	if len(days) > maxSpan/DayMS+2 || sum.MilliGPU != 1000*400*365*DayMS {
		t.Errorf("%d days with %d", len(days), sum.MilliGPU)
	}
	if !slices.IsSortedFunc(days, func(a, b Day) int { return cmp.Compare(a.Day, b.Day) }) {
		t.Error("days are in no order")
	}
}
