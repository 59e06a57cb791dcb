package accounting

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const hour = int64(3_600_000)

func newLedger(t testing.TB, c Config) *Ledger {
	t.Helper()
	l, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestDecayFollowsTheHalfLife(t *testing.T) {
	halfLife := 7 * 24 * hour
	for _, elapsed := range []int64{0, 1, 1000, hour, 24 * hour, halfLife, 3*halfLife + 12345, 100 * halfLife} {
		got := float64(remaining(elapsed, halfLife)) / float64(one)
		want := math.Exp2(-float64(elapsed) / float64(halfLife))
		if math.Abs(got-want) > 1e-12 {
			t.Errorf("remaining(%d) = %v, want %v", elapsed, got, want)
		}
		rate := int64(8000)
		got = float64(accrued(rate, elapsed, halfLife))
		want = float64(rate) * float64(halfLife) / math.Ln2 * -math.Expm1(-float64(elapsed)/float64(halfLife)*math.Ln2)
		if math.Abs(got-want) > 2+want*1e-6 {
			t.Errorf("accrued(%d) = %v, want %v", elapsed, got, want)
		}
	}
}

// Whatever the order in which starts and ends arrive, and however often the
// ledger is stored and loaded between them, what is charged is exactly the sum
// of what was held times how long.
func TestChargedIsExactlyTheSumOverAttempts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, err := New(DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		charges := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Charge {
			start := rapid.Int64Range(0, 50*hour).Draw(t, "start")
			return Charge{
				Project: rapid.SampledFrom([]string{"p", "q"}).Draw(t, "project"), User: "u",
				Model:    rapid.SampledFrom([]string{"", "H100"}).Draw(t, "model"),
				MilliGPU: rapid.Int64Range(0, 8000).Draw(t, "gpu"), MilliCPU: rapid.Int64Range(0, 64000).Draw(t, "cpu"),
				Start: start, End: start + rapid.Int64Range(0, 100*hour).Draw(t, "span"),
			}
		}), 1, 12).Draw(t, "charges")
		want := map[string]int64{}
		var open []Charge
		for _, c := range charges {
			want[c.Project] += c.MilliGPU * (c.End - c.Start)
			if err := l.Begin(c); err != nil {
				t.Fatal(err)
			}
			open = append(open, c)
			for len(open) > 0 && rapid.Bool().Draw(t, "end one") {
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				if err := l.End(open[i]); err != nil {
					t.Fatal(err)
				}
				open = append(open[:i:i], open[i+1:]...)
			}
			if rapid.Bool().Draw(t, "restart") {
				l = restarted(t, l, open)
			}
		}
		for _, c := range open {
			if err := l.End(c); err != nil {
				t.Fatal(err)
			}
		}
		for _, r := range l.Rows(1000 * hour) {
			if r.Total.MilliGPU != want[r.Project] {
				t.Fatalf("project %s is charged %d, want %d", r.Project, r.Total.MilliGPU, want[r.Project])
			}
			var byModel int64
			for _, m := range r.Models {
				byModel += m
			}
			if byModel != r.Total.MilliGPU || r.Rate != (Amount{}) {
				t.Fatalf("row %+v: models or rate disagree with the total", r)
			}
		}
	})
}

func restarted(t *rapid.T, l *Ledger, open []Charge) *Ledger {
	out, err := New(l.config)
	if err != nil {
		t.Fatal(err)
	}
	var rows []Row
	for _, r := range l.rows {
		rows = append(rows, r.clone())
	}
	if err := out.Load(rows...); err != nil {
		t.Fatal(err)
	}
	if err := out.Rebase(1<<40, open); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(l.rows, out.rows, cmp.AllowUnexported(key{})); diff != "" {
		t.Fatalf("rows after a restart (-before +after):\n%s", diff)
	}
	return out
}

func TestUsageCountsWhileItRuns(t *testing.T) {
	l := newLedger(t, DefaultConfig())
	c := Charge{Project: "p", User: "u", Model: "H100", MilliGPU: 8000, Start: 0}
	if err := l.Begin(c); err != nil {
		t.Fatal(err)
	}
	if got := l.Rows(hour)[0].Total.MilliGPU; got != 8000*hour {
		t.Errorf("after an hour: %d, want %d", got, 8000*hour)
	}
	if got := l.Rows(0)[0].Usage; got != 0 {
		t.Errorf("reading a later time changed the row: usage %d", got)
	}
}

func TestBillsTheDominantResource(t *testing.T) {
	c := DefaultConfig()
	c.Models = map[string]int64{"H100": 4000, "h100 pcie": 3000}
	l := newLedger(t, c)
	for _, tc := range []struct {
		name   string
		charge Charge
		want   int64
	}{
		{"gpu", Charge{MilliGPU: 2000, Model: "NVIDIA H100 SXM"}, 8000},
		{"longest-name", Charge{MilliGPU: 2000, Model: "NVIDIA H100 PCIe"}, 6000},
		{"other-model", Charge{MilliGPU: 500, Model: "A100"}, 500},
		{"cores", Charge{MilliGPU: 1000, MilliCPU: 64000}, 62 * 64},
		{"memory", Charge{MemMiB: 1024 * 1024}, 7 * 1024},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := l.Rate(tc.charge).Billed; got != tc.want {
				t.Errorf("billed %d, want %d", got, tc.want)
			}
		})
	}
}

func TestFairTreeOrdersDepthFirst(t *testing.T) {
	c := DefaultConfig()
	c.Tree = Tree{
		"vision": {Shares: 3, Users: map[string]int64{"ann": 1, "bob": 1}},
		"speech": {Shares: 1, Users: map[string]int64{"cat": 1}},
		"lab":    {Shares: 1},
		"robots": {Shares: 1, Parent: "lab"},
	}
	l := newLedger(t, c)
	for _, u := range []struct {
		project, user string
		gpuHours      int64
	}{{"vision", "ann", 300}, {"vision", "bob", 100}, {"speech", "cat", 200}, {"robots", "dan", 1}} {
		if err := l.Add(Charge{Project: u.project, User: u.user, MilliGPU: 1000, Start: 0, End: u.gpuHours * hour}); err != nil {
			t.Fatal(err)
		}
	}
	s := l.Shares(300 * hour)
	order := []struct{ project, user string }{
		{"nobody", "x"}, // used nothing at all
		{"robots", "new"}, {"robots", "dan"},
		{"vision", "new"}, {"vision", "bob"}, {"vision", "ann"},
		{"speech", "cat"},
	}
	last := int64(Scale + 1)
	for _, o := range order {
		f := s.Factor(o.project, o.user)
		if f >= last {
			t.Errorf("%s/%s has factor %d, want below %d", o.project, o.user, f, last)
		}
		last = f
	}
	if last < 1 {
		t.Errorf("the last factor is %d, want above 0", last)
	}
}

func TestConfigNamesEveryProblem(t *testing.T) {
	for _, tc := range []struct {
		name string
		edit func(*Config)
		want []string
	}{
		{"zero-half-life", func(c *Config) { c.HalfLifeMS = 0 }, []string{"halfLifeMs is 0"}},
		{"negative-shares", func(c *Config) { c.Tree = Tree{"a": {Shares: -1}} }, []string{`account "a" has -1 shares`}},
		{"cycle", func(c *Config) {
			c.Tree = Tree{"a": {Parent: "b"}, "b": {Parent: "a"}, "c": {Parent: "b"}}
		}, []string{"a -> b -> a", "b -> a -> b"}},
		{"own-parent", func(c *Config) { c.Tree = Tree{"a": {Parent: "a"}} }, []string{"a -> a"}},
		{"unknown-parent", func(c *Config) { c.Tree = Tree{"a": {Parent: "x"}} }, []string{`parent "x"`}},
		{"absurd-weights", func(c *Config) { c.CPU = -5; c.Models = map[string]int64{"H100": 1 << 50} }, []string{"cpu and gib", "models.H100"}},
		{"user-shares", func(c *Config) { c.Tree = Tree{"a": {Users: map[string]int64{"u": -3}}} }, []string{`user "u" -3 shares`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := DefaultConfig()
			tc.edit(&c)
			_, err := New(c)
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v does not say %q", err, want)
				}
			}
		})
	}
}

func TestBudgetIsOverOnceUsedUp(t *testing.T) {
	c := DefaultConfig()
	c.Tree = Tree{"lab": {Shares: 1, Budget: 60}, "vision": {Shares: 1, Parent: "lab"}}
	l := newLedger(t, c)
	if _, over := l.Shares(0).OverBudget("vision"); over {
		t.Error("over budget before any use")
	}
	if err := l.Add(Charge{Project: "vision", User: "u", MilliGPU: 1000, End: hour}); err != nil {
		t.Fatal(err)
	}
	b, over := l.Shares(hour).OverBudget("vision")
	if diff := cmp.Diff(Budget{Account: "lab", UsedMinutes: 60, MaxMinutes: 60}, b); diff != "" || !over {
		t.Errorf("budget (-want +got):\n%s", diff)
	}
}

func TestAbsurdChargesStopAtTheBound(t *testing.T) {
	l := newLedger(t, DefaultConfig())
	if err := l.Add(Charge{Project: "p", MilliGPU: -1}); err == nil {
		t.Error("a negative charge is accepted")
	}
	if err := l.Add(Charge{Project: "p", MilliGPU: 1 << 40, Start: 0, End: 1 << 60}); err != nil {
		t.Fatal(err)
	}
	if r := l.Rows(1 << 61)[0]; r.Total.MilliGPU != maxUsage || r.Usage < 0 {
		t.Errorf("total %d, usage %d: want the bound and no sign", r.Total.MilliGPU, r.Usage)
	}
	l.Shares(1 << 61)
}

// TestCopy: what is done to a ledger does not change a copy of it, nor the
// other way round.
func TestCopy(t *testing.T) {
	l := newLedger(t, DefaultConfig())
	charge := Charge{Project: "p", User: "u", Model: "H100", MilliGPU: 1000, Start: hour, End: 2 * hour}
	if err := l.Begin(charge); err != nil {
		t.Fatal(err)
	}
	before := l.Rows(3 * hour)
	c := l.Copy()
	if err := l.End(charge); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, c.Rows(3*hour)); diff != "" {
		t.Errorf("the copy (-want +got):\n%s", diff)
	}
	after := l.Rows(3 * hour)
	if err := c.Add(Charge{Project: "p", User: "u", Model: "A100", MilliGPU: 1000, Start: hour, End: 3 * hour}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(after, l.Rows(3*hour)); diff != "" {
		t.Errorf("the ledger (-want +got):\n%s", diff)
	}
}
