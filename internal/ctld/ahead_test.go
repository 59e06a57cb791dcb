package ctld

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/internal/store"
	"gbatch/sched"
)

// A controller that follows has read what is in the store, and what was applied since.
func TestReadAhead(t *testing.T) {
	var a ahead
	cfg := store.Config{Dir: filepath.Join(t.TempDir(), "store"), Applied: a.applied}
	if err := store.Found(cfg); err != nil {
		t.Fatal(err)
	}
	s, err := store.OpenMember(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	place := uint64(0)
	if err := s.Lead(func(batch []byte) error { place++; return s.Apply(place, batch) }); err != nil {
		t.Fatal(err)
	}
	value := func(n job.Number, name string) []byte {
		return state.Encode(&state.Job{Number: n, Name: name, Owner: &state.Owner{}, Request: &state.Request{Shape: &sched.Shape{Nodes: 1}}})
	}
	const n = 2*aheadAtOnce + 10
	var first []state.Record
	for i := job.Number(1); i <= n; i++ {
		first = append(first, state.Record{Kind: state.KindJob, Job: i, Value: value(i, "first")}, state.Record{Kind: state.KindEvent, Job: i, Seq: 1, Value: []byte("{}")})
	}
	if err := s.Commit(first); err != nil {
		t.Fatal(err)
	}
	a.begin()
	ctx, stop := context.WithCancel(t.Context())
	read := make(chan struct{})
	go func() {
		a.follow(ctx, func(f func(*store.Store) error) error { return f(s) })
		close(read)
	}()
	waitFor(t, "jobs that were read ahead", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.jobs.Len() == n
	})
	stop()
	<-read
	if err := s.Commit([]state.Record{{Kind: state.KindJob, Job: 1}, {Kind: state.KindJob, Job: 2, Value: value(2, "second")}, {Kind: state.KindJob, Job: n + 1, Value: value(n+1, "new")}}); err != nil {
		t.Fatal(err)
	}
	jobs := a.take()
	if jobs.Len() != n {
		t.Errorf("%d jobs were read ahead, want %d", jobs.Len(), n)
	}
	got, want := map[string]int{}, map[string]int{"first": n - 2, "second": 1, "new": 1}
	if err := s.Load(func(r state.Record) error {
		j, err := jobs.Take(r.Job, r.Value)
		if err != nil {
			return fmt.Errorf("job %d: %w", r.Job, err)
		}
		got[j.Name]++
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" || jobs.Len() != 0 {
		t.Errorf("(-want +got):\n%s%d were not taken", diff, jobs.Len())
	}
}
