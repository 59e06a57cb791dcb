package noded

import (
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

const (
	oneJob     = "11111111-0000-4000-8000-000000000000"
	anotherJob = "22222222-0000-4000-8000-000000000000"
)

func orderOf(uuid, line string) *api.RunOrder {
	return order(line, func(o *api.RunOrder) { o.UUID = uuid })
}

// logOf is the log of a rank of a job, or why there is none.
func (s *site) logOf(id job.RankID, uuid string) string {
	s.t.Helper()
	b := s.open(api.StreamRequest{Kind: api.StreamLog, Rank: id, UUID: uuid})
	text := s.finish(b)
	return text + b.fault
}

// supersede has the controller give a rank's number to another job.
func (s *site) supersede(id job.RankID, o *api.RunOrder) {
	s.unlearn(id)
	s.want(id, o)
}

// TestAnotherJobsNumber: a rank that runs, has ended or was let go of is not taken
// for one of another job that is given its number, also over a restart.
func TestAnotherJobsNumber(t *testing.T) {
	s := newSite(t, nil).start()
	running, ended, kept := rankID(1), rankID(2), rankID(3)
	s.want(running, orderOf(oneJob, "echo secret; "+patient))
	s.want(ended, orderOf(oneJob, "echo secret; exit 7"))
	s.want(kept, orderOf(oneJob, "echo secret; exit 7"))
	s.ready(running)
	s.exit(ended)
	s.exit(kept)
	s.drop(kept)
	until(t, "the rank to be let go of", func() bool {
		s.nudge()
		_, r := ranksForStreams{s.a}.status(kept, "")
		return r.Phase == ""
	})

	for _, id := range []job.RankID{running, ended, kept} {
		s.supersede(id, orderOf(anotherJob, "echo own; exit 5"))
	}
	for _, id := range []job.RankID{running, ended, kept} {
		if e := s.exit(id); e.Code != 5 {
			t.Errorf("%s: the other job ended with %+v, want its own code 5", id, e)
		}
		if got := s.logOf(id, anotherJob); got != "own\n" {
			t.Errorf("%s: the other job's log is %q", id, got)
		}
	}
	if got := s.logOf(kept, oneJob); got != "secret\n" {
		t.Errorf("the first job's own log is %q", got)
	}
	for _, id := range []job.RankID{running, ended, kept} {
		s.drop(id)
	}
	s.holdsNothing()

	s.halt()
	s.start()
	s.supersede(kept, orderOf("33333333-0000-4000-8000-000000000000", "exit 9"))
	if e := s.exit(kept); e.Code != 9 {
		t.Errorf("a third job ended with %+v, want its own code 9", e)
	}
	s.phase(kept, node.PhaseEnded)

}
