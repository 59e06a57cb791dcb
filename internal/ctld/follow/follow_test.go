package follow

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gbatch/internal/control/standby"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/internal/store"
	"gbatch/sched"
)

// member is a store, on a disk in memory, whose every batch is agreed on at once.
func member(t *testing.T, f *Jobs) (*store.Store, *uint64) {
	t.Helper()
	cfg := store.Config{Dir: "store", FS: vfs.NewMem(), Applied: f.Applied}
	if err := store.Found(cfg); err != nil {
		t.Fatal(err)
	}
	s, err := store.OpenMember(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	place := s.Applied()
	if err := s.Lead(func(batch []byte) error { place++; return s.Apply(place, 0, batch) }); err != nil {
		t.Fatal(err)
	}
	return s, &place
}

// record is of a job that waits, or where its name is not "waits", has ended.
func record(n job.Number, name string) state.Record {
	if name == "" {
		return state.Record{Kind: state.KindJob, Job: n}
	}
	j := &state.Job{Number: n, UUID: [16]byte{byte(n), byte(n >> 8), 1}, Name: name, State: job.Queued, Owner: &state.Owner{User: "ann", Project: "vision"},
		Request: &state.Request{Limit: sched.Hour, Shape: &sched.Shape{Nodes: 1, MilliCPU: 1000}}}
	if name != "waits" {
		j.State = job.Finished
	}
	return state.Record{Kind: state.KindJob, Job: n, Value: j.Encode()}
}

// text is all that jobs are.
func text(t *testing.T, jobs *standby.Jobs) string {
	t.Helper()
	var b strings.Builder
	for j := range jobs.Table.All() {
		waiting, waits := jobs.Sched.Waiting(sched.JobID(j.Number))
		fmt.Fprintf(&b, "%s %t %d %t\n", j.Encode(), waits, waiting.Submitted, jobs.ByUUID[j.UUID] == j.Number)
	}
	if err := jobs.Sched.Check(); err != nil {
		t.Error(err)
	}
	return fmt.Sprint(b.String(), len(jobs.ByUUID))
}

// fataler is a test, or one of its runs.
type fataler interface{ Fatal(args ...any) }

// loaded are the jobs of a store, read at once.
func loaded(t fataler, s *store.Store) *standby.Jobs {
	jobs := standby.New()
	if err := s.All(state.KindJob, func(r state.Record) error { return jobs.Put(r.Job, r.Value) }); err != nil {
		t.Fatal(err)
	}
	return jobs
}

// TestFollows: after any batches, which come before, between and after what is read, and whatever store came in place
// of another, it has what its store has.
func TestFollows(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := &Jobs{}
		s, place := member(t, f)
		for range rapid.IntRange(1, 15).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"batch", "batch", "batch", "read", "read", "begin", "another store", "lead", "lead"}).Draw(rt, "step") {
			case "batch":
				commit(rt, s)
			case "read":
				if _, err := f.Read(s); err != nil {
					t.Fatal(err)
				}
			case "begin":
				f.Begin()
			case "another store":
				s, place = member(t, f)
			case "lead":
				lead(rt, f, s, place)
			}
		}
		jobs, _, err := f.Take(s)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(text(t, loaded(t, s)), text(t, jobs)); diff != "" {
			rt.Fatalf("(-loaded +followed):\n%s", diff)
		}
	})
}

// commit stores records of some jobs.
func commit(rt *rapid.T, s *store.Store) {
	batch := map[job.Number]state.Record{}
	for range rapid.IntRange(1, 3*AtOnce/2).Draw(rt, "size") {
		n := job.Number(rapid.IntRange(1, 4*AtOnce).Draw(rt, "job"))
		batch[n] = record(n, rapid.SampledFrom([]string{"", "waits", "waits", "other"}).Draw(rt, "name"))
	}
	if err := s.Commit(slices.Collect(maps.Values(batch))); err != nil { // in any order
		rt.Fatal(err)
	}
}

// lead has one lead for some turns, of which the last are not published, and go on following then.
func lead(rt *rapid.T, f *Jobs, s *store.Store, place *uint64) {
	if _, _, err := f.Take(s); err != nil {
		rt.Fatal(err)
	}
	turns, unpublished := rapid.IntRange(0, 3).Draw(rt, "turns"), rapid.IntRange(0, 2).Draw(rt, "unpublished")
	view := loaded(rt, s)
	for range turns {
		commit(rt, s)
		view = loaded(rt, s)
		f.Published(*place)
	}
	for range unpublished {
		commit(rt, s)
	}
	var unread []job.Number
	for j := range view.Table.All() {
		if j.Number%7 == 0 {
			unread = append(unread, j.Number)
		}
	}
	for _, n := range unread {
		_ = view.Put(n, nil)
	}
	_, before := f.Counts()
	if err := f.GoOn(s, view, unread); err != nil {
		rt.Fatal(err)
	}
	if _, after := f.Counts(); unpublished == 0 && after != before+len(unread) {
		rt.Fatalf("it reads %d records again that it has published", after-before-len(unread))
	}
	f.Begin()
	if all, err := f.Read(s); err != nil || !all {
		rt.Fatalf("it does not go on with what it has: %v", err)
	}
}

// TestFollow: what is applied while the records are read is there, whichever comes first.
func TestFollow(t *testing.T) {
	f := &Jobs{}
	s, _ := member(t, f)
	var first []state.Record
	for n := job.Number(1); n <= 5*AtOnce; n++ {
		first = append(first, record(n, "waits"))
	}
	if err := s.Commit(first); err != nil {
		t.Fatal(err)
	}
	f.Begin()
	ctx, stop := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	reading.Go(func() { f.Follow(ctx, func(read func(*store.Store) error) error { return read(s) }) }) // ends with ctx
	for n := job.Number(1); n <= 5*AtOnce; n += 7 {
		batch := map[job.Number]state.Record{n: record(n, ""), n + 1: record(n+1, "other"), 6*AtOnce + n: record(6*AtOnce+n, "waits")}
		var list []state.Record
		for r := range maps.Values(batch) {
			list = append(list, r)
		}
		if err := s.Commit(list); err != nil {
			t.Fatal(err)
		}
	}
	waitAll(t, f, s)
	stop()
	reading.Wait()
	want := text(t, loaded(t, s))
	jobs, ahead, err := f.Take(s)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, text(t, jobs)); diff != "" || ahead != len(jobs.ByUUID) {
		t.Errorf("(-loaded +followed):\n%s%d were read ahead, want %d", diff, ahead, len(jobs.ByUUID))
	}
}

// waitAll waits until all of a store was read.
func waitAll(t *testing.T, f *Jobs, s *store.Store) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		f.mu.Lock()
		all := f.of == s && f.next == 0
		f.mu.Unlock()
		if all {
			return
		}
	}
	t.Fatal("the records were not read")
}

// TestUnreadable: a record that cannot be read is said to who would lead, and to nobody before.
func TestUnreadable(t *testing.T) {
	f := &Jobs{}
	s, _ := member(t, f)
	f.Begin()
	if all, err := f.Read(s); err != nil || !all {
		t.Fatalf("%t, %v", all, err)
	}
	if err := s.Commit([]state.Record{{Kind: state.KindJob, Job: 7, Value: []byte("damaged")}}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Take(s); err == nil || !strings.Contains(err.Error(), "read the record of job 7: ") {
		t.Fatalf("%v", err)
	}
	if err := s.Commit([]state.Record{record(7, "waits")}); err != nil {
		t.Fatal(err)
	}
	if jobs, _, err := f.Take(s); err != nil || len(jobs.ByUUID) != 1 {
		t.Fatalf("%v, %v", jobs, err)
	}
}
