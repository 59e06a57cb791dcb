package sim

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"testing"

	"gbatch/internal/control"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// lived is the records that a small random history leaves behind.
func lived(t *testing.T) *History {
	t.Helper()
	x := &chaos{cfg: Chaos{Rules: ChaosRules()}, now: base, stored: map[string]state.Record{}}
	x.nodes = []*fakeNode{{Node: gpuNodes(1, 2, "H100")[0], runs: map[job.RankID]sched.Time{}}}
	x.c = x.start()
	n := x.nodes[0]
	sync := func(words ...node.RankStatus) {
		apply(x, control.NodeSync{Name: n.Name, Instance: "0", Hash: "1", Inventory: &n.Inventory, Ranks: words})
	}
	sync()
	for i := range 6 {
		ev := control.Submit{User: "ann", Project: "a", Spec: &job.Spec{}, Document: []byte("{}"),
			Request: &state.Request{Shape: &sched.Shape{MilliGPU: 2000}, Limit: sched.Hour}}
		ev.UUID[0] = byte(i + 1)
		apply(x, ev)
	}
	for i := range 5 {
		x.round()
		x.now += 10 * sched.Minute
		sync(node.RankStatus{ID: job.RankID{Job: job.Number(i + 1), Attempt: 1}, Phase: node.PhaseEnded, Exit: &node.Exit{StartedMS: 1, EndedMS: int64(x.now)}})
	}
	if x.err != nil {
		t.Fatal(x.err)
	}
	var h History
	for _, r := range x.stored {
		if err := h.Take(r); err != nil {
			t.Fatal(err)
		}
	}
	return &h
}

func TestWhatIf(t *testing.T) {
	w, nodes := lived(t).Workload()
	if len(w.Jobs) != 5 || len(nodes) != 1 || len(w.Notes) != 1 {
		t.Fatalf("the past has %d jobs, %d nodes and notes %q: want 5 jobs that ran, a node, and a note of the one that waits", len(w.Jobs), len(nodes), w.Notes)
	}
	reports, curves, err := WhatIf(Change{Workload: w, Nodes: nodes, Rules: ChaosRules(), Add: []string{"1x2xh100"}, Set: []string{"half_life=14d"}})
	if err != nil {
		t.Fatal(err)
	}
	was, same, more := reports[0], reports[1], reports[2]
	if was.AvgWait != 1200 || same.AvgWait != was.AvgWait {
		t.Errorf("waits were %g s and are %g s replayed: want 1200 s of both", was.AvgWait, same.AvgWait)
	}
	if more.AvgWait >= same.AvgWait/2 {
		t.Errorf("with a second node the wait is %g s, with one %g s: want less than half", more.AvgWait, same.AvgWait)
	}
	text := Text(reports...)
	for _, want := range []string{"as it was", "with 1x2xh100, half_life=14d", "-6", "note: 1 jobs left out"} {
		if !strings.Contains(text, want) {
			t.Errorf("the table lacks %q:\n%s", want, text)
		}
	}
	for d := xml.NewDecoder(strings.NewReader(SVG(curves...))); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
	}
}

func TestSet(t *testing.T) {
	for _, tc := range []struct {
		text, want string
		got        func(control.Config) any
	}{
		{"half_life=14d", "1209600000", func(c control.Config) any { return c.Accounting.HalfLifeMS }},
		{"mode=easy", "easy", func(c control.Config) any { return c.Policy.Mode }},
		{"weights.fair_share=7", "7", func(c control.Config) any { return c.Policy.Weights.FairShare }},
		{"MaxWaitBoost=90m", "5400000", func(c control.Config) any { return c.Policy.MaxWaitBoost }},
		{"max_age=60", "60000", func(c control.Config) any { return c.Policy.MaxAge }},
		{"mode", "want NAME=VALUE", nil},
		{"mode=best", `mode is "best"`, nil},
		{"colour=red", "there is no such rule; there are half_life,", nil},
		{"weights=3", "is no single value", nil},
		{"mode.x=3", "mode has no parts", nil},
		{"max_age=soon", `"soon" is no length of time`, nil},
		{"weights.age=many", `"many" is no whole number`, nil},
		{"half_life=0", "halfLifeMs is 0", nil},
	} {
		t.Run(tc.text, func(t *testing.T) {
			cfg := ChaosRules()
			err := Set(&cfg, tc.text)
			switch {
			case tc.got == nil && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got error %v, want one with %q", err, tc.want)
			case tc.got != nil && err != nil:
				t.Error(err)
			case tc.got != nil && fmt.Sprint(tc.got(cfg)) != tc.want:
				t.Errorf("it is %v, want %s", tc.got(cfg), tc.want)
			}
		})
	}
}

func TestAddNodes(t *testing.T) {
	for _, bad := range []string{"", "2", "2x8", "0x8xh100", "2x-1xh100", "axbxc", "2x8x", "2x999xh100"} {
		if _, err := AddNodes(nil, bad); err == nil {
			t.Errorf("%q is taken for nodes", bad)
		}
	}
	old := gpuNodes(1, 2, "NVIDIA H100 80GB")
	old[0].Inventory.CPUs = 77
	got, err := AddNodes(old, "2x2xh100")
	if err != nil || len(got) != 3 || got[2].Inventory.CPUs != 77 || got[2].Inventory.GPUs[0].UUID == got[1].Inventory.GPUs[0].UUID {
		t.Errorf("got %+v, %v: want two more nodes like the old one, with GPUs of their own", got, err)
	}
}

// TestPastRequest: a job of the past is not ended sooner than it ended, and asks for no
// licences that the rules do not have.
func TestPastRequest(t *testing.T) {
	cfg := config{Control: control.Config{Policy: sched.Policy{Licenses: map[string]int64{"x": 2, "y": 1}}}}
	shape := &sched.Shape{MilliCPU: 1000, Licenses: []sched.License{{Name: "x", Count: 2}, {Name: "y", Count: 2}, {Name: "z", Count: 1}}}
	j := Job{Run: 2 * sched.Hour, Request: &state.Request{Shape: shape, Limit: 4 * sched.Hour, LimitMin: sched.Hour}}
	got := j.request(&cfg)
	if got.LimitMin != 2*sched.Hour || got.Limit != 4*sched.Hour || len(got.Shape.Licenses) != 1 || got.Shape.Licenses[0].Name != "x" {
		t.Errorf("it asks for %d of %d ms and %+v", got.LimitMin, got.Limit, got.Shape.Licenses)
	}
	if len(shape.Licenses) != 3 {
		t.Errorf("the past itself has now %+v", shape.Licenses)
	}
}
