package state

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/sched"
)

// over is a job that has ended as most do.
func over() *Job {
	at := &Attempt{Attempt: 1, Start: 5, End: 90, Image: "sha256:1", Ranks: []Rank{{
		Alloc:   sched.Allocation{Node: "n1", MilliCPU: 2000, MemMiB: 1024, GPUs: []sched.GPUShare{{UUID: "GPU-1", Milli: 500}}},
		Cluster: 1, Model: "H100", Instance: "i", Knew: 4, Cores: "0-1", Image: "sha256:1", Phase: node.PhaseEnded,
		Exit: &node.Exit{StartedMS: 10, EndedMS: 89, FreeMS: 90, PeakMem: 1 << 20, CPUSeconds: 0.5},
	}}}
	at.Used.MilliCPU = 170
	return &Job{
		Number: 1, Name: "x", Owner: &Owner{User: "ann", Project: "default"}, Request: &Request{Shape: &sched.Shape{MilliCPU: 2000}},
		State: job.Finished, Tries: 1, Attempt: at, Used: at.Used,
	}
}

// TestSettled: a job that is over says of its last attempt what it said before it was settled, and is stored alike,
// whatever there is of it; and one that ended as most do takes less memory.
func TestSettled(t *testing.T) {
	in := &Interner{}
	for name, tc := range fieldsOfAttempts(t) {
		t.Run(name, func(t *testing.T) {
			want := over()
			tc(want.Attempt)
			j := *want
			j.Settle(in)
			again := j
			again.Settle(in)
			if diff := cmp.Diff(want.Attempt, again.Last()); diff != "" || again.Try() != want.Attempt.Attempt {
				t.Errorf("attempt %d (-as it was +settled):\n%s", again.Try(), diff)
			}
			cluster, partition := j.Where()
			wantCluster, wantPartition := want.Where()
			if !slices.Equal(slices.Collect(want.Nodes()), slices.Collect(j.Nodes())) || cluster != wantCluster || partition != wantPartition {
				t.Errorf("it was on %v in cluster %d and partition %q", slices.Collect(j.Nodes()), cluster, partition)
			}
			if seldom := seldomSettled[name]; seldom == (j.settled != nil) {
				t.Errorf("it is settled: %t", j.settled != nil)
			}
			if !bytes.Equal(Encode(want), j.Encode()) {
				t.Errorf("it is stored as %s, was %s", j.Encode(), Encode(want))
			}
		})
	}
	a, b, live := over(), over(), over()
	b.Attempt.Start, b.Attempt.Ranks[0].Exit.CPUSeconds = 7, 3
	live.State = job.Running
	for _, j := range []*Job{a, b, live} {
		j.Settle(in)
	}
	if a.settled == nil || b.settled == nil || a.settled.rank.place != b.settled.rank.place || live.settled != nil || live.Attempt == nil {
		t.Errorf("settled: %v and %v, in the same place; one that runs: %v", a.settled, b.settled, live.settled)
	}
	if size := unsafe.Sizeof(settled{}); size > 128 {
		t.Errorf("what is kept of an attempt takes %d bytes, want at most 128, which is a class of sizes", size)
	}
}

// seldomSettled are those of fieldsOfAttempts that few attempts have when they are over.
var seldomSettled = map[string]bool{
	"no exit": true, "of a gang not over": true,
	"attempt Limit": true, "attempt Paused": true, "attempt Sent": true, "attempt SentSeq": true, "attempt Behind": true,
	"rank Phase": true, "rank Progress": true, "rank Done": true, "rank Ports": true, "rank Resize": true, "rank Since": true,
	"rank Signalled": true, "rank Unsent": true, "rank Unsure": true,
}

// fieldsOfAttempts changes each field of an attempt, of its rank and of how that ended, one at a time.
func fieldsOfAttempts(t *testing.T) map[string]func(*Attempt) {
	out := map[string]func(*Attempt){
		"as most": func(*Attempt) {}, "no exit": func(a *Attempt) { a.Ranks[0].Exit = nil }, "of a gang not over": func(a *Attempt) {
			a.Ranks = append(a.Ranks, a.Ranks[0])
			a.Ranks[1].Phase = node.PhaseRunning
		}, "gang": func(a *Attempt) {
			second := a.Ranks[0]
			second.Alloc.Node, second.Exit = "n2", &node.Exit{Code: 143, Signal: 15, EndedMS: 3, Reason: job.NodeFail}
			a.Ranks = append(a.Ranks, second)
		},
	}
	parts := map[string]func(*Attempt) reflect.Value{
		"attempt":    func(a *Attempt) reflect.Value { return reflect.ValueOf(a).Elem() },
		"rank":       func(a *Attempt) reflect.Value { return reflect.ValueOf(&a.Ranks[0]).Elem() },
		"allocation": func(a *Attempt) reflect.Value { return reflect.ValueOf(&a.Ranks[0].Alloc).Elem() },
		"exit":       func(a *Attempt) reflect.Value { return reflect.ValueOf(a.Ranks[0].Exit).Elem() },
	}
	for what, of := range parts {
		for i := range of(over().Attempt).NumField() {
			name := of(over().Attempt).Type().Field(i).Name
			if what == "attempt" && name == "Ranks" || what == "rank" && (name == "Alloc" || name == "Exit") {
				continue // by their own fields
			}
			out[fmt.Sprintf("%s %s", what, name)] = func(a *Attempt) { fill(t, of(a).Field(i)) }
		}
	}
	return out
}

// fill sets a field to something.
func fill(t *testing.T, f reflect.Value) {
	switch f.Kind() {
	case reflect.String:
		f.SetString("other")
	case reflect.Bool:
		f.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int32, reflect.Int64:
		f.SetInt(77)
	case reflect.Uint32, reflect.Uint64:
		f.SetUint(77)
	case reflect.Float64:
		f.SetFloat(77)
	case reflect.Slice:
		f.Set(reflect.MakeSlice(f.Type(), 1, 1))
	case reflect.Pointer:
		f.Set(reflect.New(f.Type().Elem()))
	case reflect.Struct:
		fill(t, f.Field(0))
	default:
		t.Fatalf("a field of kind %s, which this test does not know", f.Kind())
	}
}
