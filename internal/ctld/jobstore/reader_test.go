package jobstore

import (
	"log/slog"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/internal/store"
)

// TestReadsWhatIsPublished: of a job nothing is shown that only the store has yet, as it may be lost.
func TestReadsWhatIsPublished(t *testing.T) {
	s, err := store.Open(store.Config{Dir: "db", FS: vfs.NewMem(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	at := &state.Attempt{Attempt: 2, Launches: &state.Launches{Next: 2, Running: []state.Launch{{Number: 1, Attempt: 2, Name: "runs"}}}}
	j := &state.Job{Number: 7, State: job.Running, Version: 3, Attempt: at}
	later := &state.Attempt{Attempt: 3}
	step := func(a *state.Attempt, n uint32, name string) state.Record {
		l := state.Launch{Number: n, Attempt: a.Attempt, Name: name}
		if name != "runs" {
			l.Ended = 1
		}
		return state.Record{Kind: state.KindLaunch, Job: 7, Seq: a.StepSeq(n), Value: state.Encode(l)}
	}
	var records []state.Record
	for v := range uint64(5) {
		records = append(records, state.Record{Kind: state.KindEvent, Job: 7, Seq: v + 1, Value: state.Encode(state.Line{Message: "event"})})
	}
	for a := range uint32(3) {
		records = append(records, state.Record{Kind: state.KindAttempt, Job: 7, Seq: uint64(a + 1), Value: state.Encode(state.Attempt{Attempt: a + 1})})
	}
	records = append(records, step(&state.Attempt{Attempt: 1}, 0, "earlier"), step(at, 0, "ended"), step(at, 1, "ended since"), step(at, 2, "begun since"), step(later, 0, "tried again since"))
	if err := s.Commit(records); err != nil {
		t.Fatal(err)
	}
	r := &Reader{Store: s}
	type shown struct {
		Events, Attempts int
		Steps            []string
	}
	var got shown
	events, err := r.Timeline(j)
	if err != nil {
		t.Fatal(err)
	}
	attempts, err := r.Attempts(j)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := r.Steps(j)
	if err != nil {
		t.Fatal(err)
	}
	got.Events, got.Attempts = len(events), len(attempts)
	for _, x := range steps {
		got.Steps = append(got.Steps, x.Name)
		if x.Name == "runs" && !x.Ended.IsZero() {
			t.Errorf("a step that runs ended at %v", x.Ended)
		}
	}
	if diff := cmp.Diff(shown{Events: 3, Attempts: 1, Steps: []string{"earlier", "ended", "runs"}}, got); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
}
