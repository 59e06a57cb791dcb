package job

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTransitionTable checks the shape of the table: from the two states in
// which a job can begin every state is reached, a final state leads only to
// DELETED, and nothing that is not a state appears.
func TestTransitionTable(t *testing.T) {
	known := map[State]bool{}
	for _, s := range States {
		known[s] = true
	}
	reached := map[State]bool{}
	var visit func(s State)
	visit = func(s State) {
		if reached[s] {
			return
		}
		reached[s] = true
		for _, to := range moves[s] {
			visit(to)
		}
	}
	visit(OnHold)
	visit(Queued)
	if diff := cmp.Diff(known, reached); diff != "" {
		t.Errorf("states reached (-want +got):\n%s", diff)
	}
	for _, from := range States {
		for _, to := range States {
			can := CanMove(from, to)
			switch {
			case from == to && can:
				t.Errorf("%s moves to itself", from)
			case from == Deleted && can:
				t.Errorf("DELETED moves to %s", to)
			case from.Final() && from != Deleted && can != (to == Deleted):
				t.Errorf("final %s -> %s is %v", from, to, can)
			case !from.Final() && to == Deleted && can:
				t.Errorf("%s is removed before it has ended", from)
			}
		}
		kinds := 0
		for _, is := range []bool{from.Pending(), from.Active(), from.Final()} {
			if is {
				kinds++
			}
		}
		if kinds != 1 {
			t.Errorf("%s is of %d kinds", from, kinds)
		}
		if !from.Final() && !(CanMove(from, Cancelled) && (from == OnHold || CanMove(from, Failed))) {
			t.Errorf("%s cannot be ended", from)
		}
	}
	if CanMove("NOSUCH", Queued) || CanMove(Queued, "NOSUCH") {
		t.Error("an unknown state moves")
	}
}

func TestReasonClass(t *testing.T) {
	want := map[Reason]Class{
		None: "", ByUser: "", ByAdmin: "", Preempted: "", DependencyFailed: "",
		NodeFail: Infra, GPUError: Infra, Server: Infra,
		ExitCode: Program, OOM: Program, Signal: Program, MaxRuntime: Program, MaxQueued: Program, NotAfter: Program,
		InteractiveNoRoom: Program, ImagePull: Program, BadSpec: Program, PortInUse: Program, Mount: Program,
		BackoffLimit: Program, FailedIndexes: Program, Utilization: Program,
	}
	got := map[Reason]Class{}
	for r := range want {
		got[r] = r.Class()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("classes (-want +got):\n%s", diff)
	}
}

func TestRankID(t *testing.T) {
	id := RankID{Job: 123, Task: 4, Attempt: 2, Rank: 1}
	if got := id.String(); got != "123_4.2.1" {
		t.Errorf("String() = %q", got)
	}
	if got, err := ParseRankID("123_4.2.1"); err != nil || got != id {
		t.Errorf("ParseRankID = %v, %v", got, err)
	}
	for _, s := range []string{"", "123", "123_4", "123_4.2", "123_4.2.1.0", "0123_4.2.1", "+1_4.2.1", "1_-4.2.1", "1_4.2.4294967296", "a_1.1.1", "1_1.1.1 "} {
		if got, err := ParseRankID(s); err == nil {
			t.Errorf("ParseRankID(%q) = %v", s, got)
		}
	}
}

// TestParentTransitionTable: a job with tasks is never active, and can end
// from both states that it can be in.
func TestParentTransitionTable(t *testing.T) {
	for _, from := range States {
		for _, to := range States {
			want := from.Pending() && from != to && (to.Pending() || to == Finished || to == Failed || to == Cancelled)
			if got := CanMoveParent(from, to); got != want {
				t.Errorf("%s -> %s is %v, want %v", from, to, got, want)
			}
		}
	}
}
