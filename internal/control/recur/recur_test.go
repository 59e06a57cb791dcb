package recur

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // zones, wherever it runs

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gbatch/internal/state"
	"gbatch/sched"
	"gbatch/sched/spec"
)

func brussels(t interface{ Fatal(...any) }) *time.Location {
	zone, err := time.LoadLocation("Europe/Brussels")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func at(text string) sched.Time {
	t, err := time.Parse("2006-01-02 15:04", text)
	if err != nil {
		panic(err)
	}
	return sched.Time(t.UnixMilli())
}

func window(from, until, cron, last string) state.Window {
	w := state.Window{Window: sched.Window{Name: "w", Start: at(from), End: at(until), Nodes: []string{"n1"}}, Every: &state.Every{Cron: cron, Zone: "Europe/Brussels"}}
	if last != "" {
		w.Every.Until = at(last)
	}
	return w
}

func texts(w state.Window, n int) (out []string) {
	for _, s := range w.Spans()[:min(n, len(w.Spans()))] {
		form := func(t sched.Time) string { return time.UnixMilli(int64(t)).UTC().Format("01-02T15:04") }
		out = append(out, form(s.Start)+" "+form(s.End))
	}
	return out
}

// TestFirst: times by the clock on the wall, in UTC here.
func TestFirst(t *testing.T) {
	zone := brussels(t)
	for name, c := range map[string]struct {
		w    state.Window
		want []string
	}{
		"each day": {window("2026-03-02 17:00", "2026-03-03 05:00", "0 18 * * *", ""), []string{"03-02T17:00 03-03T05:00", "03-03T17:00 03-04T05:00", "03-04T17:00 03-05T05:00"}},
		// the clock goes forward in the night to March 29, and 12 hours on it are 11
		"summer": {window("2026-03-27 17:00", "2026-03-28 05:00", "0 18 * * *", ""), []string{"03-27T17:00 03-28T05:00", "03-28T17:00 03-29T04:00", "03-29T16:00 03-30T04:00"}},
		// and back in that to October 25
		"winter":    {window("2026-10-23 16:00", "2026-10-24 04:00", "0 18 * * *", ""), []string{"10-23T16:00 10-24T04:00", "10-24T16:00 10-25T05:00", "10-25T17:00 10-26T05:00"}},
		"left out":  {window("2026-03-28 01:30", "2026-03-28 02:00", "30 2 * * *", ""), []string{"03-28T01:30 03-28T02:00", "03-29T01:30 03-29T02:00", "03-30T00:30 03-30T01:00"}},
		"twice":     {window("2026-10-24 00:30", "2026-10-24 01:00", "30 2 * * *", ""), []string{"10-24T00:30 10-24T01:00", "10-25T01:30 10-25T02:00", "10-26T01:30 10-26T02:00"}},
		"weekdays":  {window("2026-03-06 07:00", "2026-03-06 09:00", "0 8 * * 1-5", ""), []string{"03-06T07:00 03-06T09:00", "03-09T07:00 03-09T09:00", "03-10T07:00 03-10T09:00"}},
		"from then": {window("2026-03-06 09:00", "2026-03-06 10:00", "0 8 * * 1", "2026-03-10 00:00"), []string{"03-09T07:00 03-09T08:00"}},
		"long":      {window("2026-03-06 07:00", "2026-03-07 08:00", "0 8 * * *", ""), []string{`reservation "w" lasts 25 hours, and begins anew after 1 day`}},
		"no table":  {window("2026-03-06 07:00", "2026-03-07 08:00", "at noon", ""), []string{"want five fields"}},
		"none":      {window("2026-03-06 07:00", "2026-03-06 08:00", "0 8 * * 1", "2026-03-07 00:00"), []string{`reservation "w" would never begin`}},
		"short":     {window("2026-03-06 07:00", "2026-03-06 07:00", "0 8 * * 1", ""), []string{`reservation "w" lasts less than a minute`}},
	} {
		t.Run(name, func(t *testing.T) {
			w, refusal := First(c.w, zone)
			if refusal != nil {
				if len(c.want) != 1 || !strings.HasPrefix(refusal.Message, c.want[0]) {
					t.Errorf("refused: %s, want %q", refusal.Message, c.want)
				}
				return
			}
			if diff := cmp.Diff(c.want, texts(w, 3)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if err := w.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLater: what is over is left behind, however long nobody looked, and the last time ends it.
func TestLater(t *testing.T) {
	zone := brussels(t)
	w, _ := First(window("2026-03-02 17:00", "2026-03-03 05:00", "0 18 * * *", "2026-06-01 00:00"), zone)
	for _, c := range []struct {
		now  string
		want []string
	}{
		{"2026-03-03 05:00", []string{"03-03T17:00 03-04T05:00"}},
		{"2026-05-30 20:00", []string{"05-30T16:00 05-31T04:00", "05-31T16:00 06-01T04:00"}},
		{"2026-06-01 04:00", nil},
		{"2027-01-01 04:00", nil},
	} {
		later, again := Later(w, zone, at(c.now))
		var got []string
		if again {
			got = texts(later, max(len(c.want), 1))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("at %s (-want +got):\n%s", c.now, diff)
		}
	}
}

// TestAlwaysValid: whatever table, length and moment, the scheduler takes the times,
// they go on where they ended, and none that is over is among them.
func TestAlwaysValid(t *testing.T) {
	zone := brussels(t)
	rapid.Check(t, func(rt *rapid.T) {
		cron := rapid.SampledFrom([]string{"30 2 * * *", "0 * * * *", "*/30 1-3 * * *", "0 18 * * 1-5", "15 2,3 * * 0"}).Draw(rt, "table")
		start := at("2026-03-25 00:00") + sched.Time(rapid.IntRange(0, 300*24*60).Draw(rt, "minutes"))*sched.Minute
		w := window("2026-01-01 00:00", "2026-01-01 00:01", cron, "")
		w.Start, w.End = start, start+sched.Time(rapid.IntRange(1, 180).Draw(rt, "length"))*sched.Minute
		w, refusal := First(w, zone)
		if refusal != nil {
			return
		}
		now := w.End + sched.Time(rapid.IntRange(0, 400*24*60).Draw(rt, "later"))*sched.Minute
		later, again := Later(w, zone, now)
		if err := later.Validate(); err != nil || !again || later.End <= now || len(later.Spans()) > spec.MaxSpans {
			rt.Fatalf("at %d: %+v, %v, %t", now, later, err, again)
		}
	})
}
