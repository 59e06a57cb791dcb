package launch

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// text is a layout as NODE:TASK/CORES/GPUS...
func text(i *Info, l *Layout) string {
	var out []string
	for _, at := range l.Placed {
		for _, t := range at.Tasks {
			out = append(out, strings.ReplaceAll(fmt.Sprintf("%s:%d/%v/%v", i.Nodes[at.Rank].Name, t.ID, t.CPUs, t.GPUs), " ", ","))
		}
	}
	return strings.Join(out, " ")
}

func TestPlan(t *testing.T) {
	two := &Info{Nodes: []Node{{Name: "a", CPUs: 4, GPUs: 2}, {Name: "b", CPUs: 4, GPUs: 2}}}
	for name, tc := range map[string]struct {
		q    Request
		want string
	}{
		"one on each":       {Request{}, "a:0/[0]/[0,1] b:1/[0]/[0,1]"},
		"shared evenly":     {Request{Tasks: 3}, "a:0/[0]/[0,1] a:1/[1]/[0,1] b:2/[0]/[0,1]"},
		"cyclic":            {Request{Tasks: 3, Distribution: "cyclic"}, "a:0/[0]/[0,1] a:2/[1]/[0,1] b:1/[0]/[0,1]"},
		"plane":             {Request{Tasks: 8, Distribution: "plane=2"}, "a:0/[0]/[0,1] a:1/[1]/[0,1] a:4/[2]/[0,1] a:5/[3]/[0,1] b:2/[0]/[0,1] b:3/[1]/[0,1] b:6/[2]/[0,1] b:7/[3]/[0,1]"},
		"once":              {Request{Tasks: 1}, "a:0/[0]/[0,1]"},
		"on a node":         {Request{Tasks: 1, On: []string{"b"}}, "b:0/[0]/[0,1]"},
		"not on a node":     {Request{Not: []string{"a"}}, "b:0/[0]/[0,1]"},
		"relative":          {Request{Relative: 1}, "b:0/[0]/[0,1]"},
		"per node":          {Request{PerNode: 2, Nodes: 1, MaxNodes: 1}, "a:0/[0]/[0,1] a:1/[1]/[0,1]"},
		"cores of each":     {Request{Tasks: 2, CPUs: 3}, "a:0/[0,1,2]/[0,1] b:1/[0,1,2]/[0,1]"},
		"a GPU each":        {Request{Tasks: 4, GPUsPerTask: new(1)}, "a:0/[0]/[0] a:1/[1]/[1] b:2/[0]/[0] b:3/[1]/[1]"},
		"a GPU of a node":   {Request{GPUsPerNode: new(1)}, "a:0/[0]/[0] b:1/[0]/[0]"},
		"no GPU":            {Request{Tasks: 1, GPUsPerNode: new(0)}, "a:0/[0]/[]"},
		"tasks by turns":    {Request{Tasks: 4, GPUBind: "single:1"}, "a:0/[0]/[0] a:1/[1]/[1] b:2/[0]/[0] b:3/[1]/[1]"},
		"by a map":          {Request{Tasks: 4, GPUBind: "map_gpu:1,0"}, "a:0/[0]/[1] a:1/[1]/[0] b:2/[0]/[1] b:3/[1]/[0]"},
		"more than cores":   {Request{Tasks: 9}, "More processors requested than permitted"},
		"overcommitted":     {Request{Tasks: 5, Nodes: 1, MaxNodes: 1, Overcommit: true}, "a:0/[0,1,2,3]/[0,1] a:1/[0,1,2,3]/[0,1] a:2/[0,1,2,3]/[0,1] a:3/[0,1,2,3]/[0,1] a:4/[0,1,2,3]/[0,1]"},
		"more than nodes":   {Request{Nodes: 3}, "Only allocated 2 nodes asked for 3"},
		"more GPUs":         {Request{Tasks: 1, GPUsPerNode: new(3)}, "More processors requested than permitted"},
		"a stranger's node": {Request{On: []string{"c"}}, "node c is not of this job, which has a,b"},
		"two on one core":   {Request{Tasks: 2, CPUs: 4, Nodes: 1, MaxNodes: 1}, "More processors requested than permitted"},
	} {
		l, err := two.Plan(two.AllFree(), tc.q)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = text(two, l)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestPlanKeepsCount: whatever steps come and go, no core and no GPU that was
// asked for is two steps' at a time, and all are free in the end.
func TestPlanKeepsCount(t *testing.T) {
	info := &Info{Nodes: []Node{{Name: "a", CPUs: 4, GPUs: 2}, {Name: "b", CPUs: 3, GPUs: 1}}}
	rapid.Check(t, func(t *rapid.T) {
		free := info.AllFree()
		type running struct {
			q Request
			l *Layout
		}
		var all []running
		for range 30 {
			if len(all) > 0 && rapid.Bool().Draw(t, "end") {
				k := rapid.IntRange(0, len(all)-1).Draw(t, "which")
				Release(free, all[k].l, all[k].q)
				all = append(all[:k], all[k+1:]...)
				continue
			}
			q := Request{Tasks: rapid.IntRange(0, 5).Draw(t, "tasks"), CPUs: rapid.IntRange(0, 2).Draw(t, "cpus"), Overcommit: rapid.Bool().Draw(t, "over")}
			if rapid.Bool().Draw(t, "gpus") {
				q.GPUsPerTask = new(1)
			}
			l, err := info.Plan(free, q)
			if err != nil {
				if l != nil || err.Error() == "" {
					t.Fatal(err)
				}
				continue
			}
			all = append(all, running{q, l})
			held := map[string]int{}
			for step, x := range all {
				for _, at := range x.l.Placed {
					for _, task := range at.Tasks {
						for _, c := range task.CPUs {
							name := fmt.Sprint("cpu", at.Rank, c)
							if other, ok := held[name]; ok && other != step {
								t.Fatalf("core %d of rank %d is held twice", c, at.Rank)
							}
							held[name] = step
						}
						for _, g := range task.GPUs {
							name := fmt.Sprint("gpu", at.Rank, g)
							if _, ok := held[name]; ok && x.q.GPUsPerTask != nil {
								t.Fatalf("GPU %d of rank %d is held twice", g, at.Rank)
							}
							if x.q.GPUsPerTask != nil {
								held[name] = step
							}
						}
					}
				}
			}
		}
		for _, x := range all {
			Release(free, x.l, x.q)
		}
		if diff := cmp.Diff(info.AllFree(), free); diff != "" {
			t.Fatalf("not all is free again (-want +got):\n%s", diff)
		}
	})
}

func TestBusyIsToldFromNever(t *testing.T) {
	info := &Info{Nodes: []Node{{Name: "a", CPUs: 2}}}
	free := info.AllFree()
	if _, err := info.Plan(free, Request{Tasks: 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := info.Plan(free, Request{Tasks: 1}); !errors.Is(err, ErrBusy) {
		t.Errorf("a step that has to wait: %v", err)
	}
	if _, err := info.Plan(free, Request{Tasks: 3}); errors.Is(err, ErrBusy) || err == nil {
		t.Errorf("a step that never fits: %v", err)
	}
	if l, err := info.Plan(free, Request{Tasks: 1, Overlap: true}); err != nil || len(l.Placed[0].Tasks[0].CPUs) != 1 {
		t.Errorf("a step that shares: %v", err)
	}
}

func TestPattern(t *testing.T) {
	p := Pattern{Info: &Info{Job: 12, ID: "11_3", Name: "train", User: "ann"}, Step: 2, Task: 7, Node: 1, Host: "n1.lab"}
	for name, want := range map[string]string{
		"o-%j.%t": "o-12.7", "%J-%s-%3t-%N-%n": "12.2-2-007-n1-1", "%A_%a %x %u 100%%": "11_3 train ann 100%", "%q%": "%q%", `a\%t`: "a%t",
	} {
		if got := p.Expand(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
		if per := PerTask("%4t"); !per || PerTask("%j-%%") {
			t.Error("which names differ among tasks")
		}
	}
}
