package state

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/sched"
)

// Jobs that ask the same share what they ask, whether they are read or come in.
func TestInternedJobs(t *testing.T) {
	var in Interner
	read := func(n uint64, cores int64) *Job {
		j := &Job{Number: 1, Name: "a", Owner: &Owner{User: "ann"}, Request: &Request{Shape: &sched.Shape{Nodes: 1, MilliCPU: cores}}, Version: n}
		v := Encode(j)
		got, err := in.Job(v)
		clear(v) // it was only lent
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(Encode(j)), string(Encode(got))); diff != "" {
			t.Error(diff)
		}
		return got
	}
	one, other, same := read(1, 1000), read(2, 2000), read(3, 1000)
	if one.Request != same.Request || one.Request.Shape != same.Request.Shape || one.Owner != same.Owner {
		t.Error("two jobs that ask the same do not share it")
	}
	if one.Request == other.Request || one.Owner != other.Owner {
		t.Error("two jobs that ask something else share it, or do not share their owner")
	}
	if in.Request(Request{Shape: &sched.Shape{Nodes: 1, MilliCPU: 1000}}) != one.Request {
		t.Error("a new job does not share what jobs ask that were read")
	}
	if _, err := in.Job([]byte(`{"n":1,"owner":{},"request":null}`)); err == nil {
		t.Error("a job that asks nothing was read")
	}
}
