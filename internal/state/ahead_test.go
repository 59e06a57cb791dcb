package state

import (
	"testing"

	"gbatch/internal/job"
	"gbatch/sched"
)

// What was read ahead is given for the bytes that it was read from, once; for all else the
// record is read.
func TestAhead(t *testing.T) {
	value := func(n job.Number, version uint64) []byte {
		return Encode(&Job{Number: n, Owner: &Owner{User: "ann"}, Request: &Request{Shape: &sched.Shape{Nodes: 1}}, Version: version})
	}
	a := NewAhead()
	for n := job.Number(1); n <= 4; n++ {
		v := value(n, 1)
		a.Put(n, v)
		clear(v) // it was only lent
	}
	a.Put(2, value(2, 5))
	a.Put(3, nil)
	a.Put(4, []byte("damaged"))
	if a.Len() != 2 {
		t.Errorf("%d jobs were read ahead, want 1 and 2", a.Len())
	}
	take := func(n job.Number, version uint64, left int) *Job {
		t.Helper()
		j, err := a.Take(n, value(n, version))
		if err != nil || j.Number != n || j.Version != version {
			t.Fatalf("%+v, %v", j, err)
		}
		if a.Len() != left {
			t.Errorf("%d are left, want %d", a.Len(), left)
		}
		return j
	}
	one := take(1, 1, 1)
	take(2, 1, 1) // of another version than it has
	if again := take(1, 1, 1); again == one || again.Request != one.Request {
		t.Error("one job was given twice, or does not share what others share")
	}
	take(2, 5, 0)
	if _, err := a.Take(4, []byte("damaged")); err == nil {
		t.Error("a damaged record was read")
	}
}
