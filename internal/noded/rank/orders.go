package rank

import (
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/noded/contact"
)

// Want takes in what the controller orders of a rank that is here. It only
// notes it; the rank's goroutine does it.
func (r *Rank) Want(o api.Order) {
	s := r.state
	s.mu.Lock()
	defer s.mu.Unlock()
	s.again = true
	s.takeSecrets(o.Secrets)
	s.setPaused(o.Paused)
	s.letBegin(o.Go)
	s.setResize(o.Resize)
	s.setLimit(o.LimitMS)
	s.setSignals(o.Signals)
	s.setCancelSteps(o)
	if o.Stop != nil {
		s.requestStop(Stop{Ahead: o.Stop.Ahead, Signal: o.Stop.Signal, Grace: time.Duration(o.Stop.GraceMS) * time.Millisecond, Reason: o.Stop.Reason, Text: o.Stop.Text})
	}
}

// Stop asks for the rank's end. The first reason stays; a later request can
// only bring the kill forward.
func (r *Rank) Stop(s Stop) {
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	r.state.requestStop(s)
}

// Release says that the order is gone: end the rank if it runs, then let go
// of it.
func (r *Rank) Release() {
	s := r.state
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.again = false; s.released {
		return
	}
	s.released = true
	grace := time.Duration(r.order.GraceMS) * time.Millisecond
	s.requestStop(Stop{Signal: "TERM", Grace: min(grace, orphanGrace), Reason: job.Server, Text: "the controller no longer wants this attempt"})
	s.poke()
}

// orphanGrace is what a rank that nobody wants any more gets at most: another
// attempt of its task may be about to start.
const orphanGrace = 10 * time.Second

// What follows is called with mu held.

func (s *state) requestStop(want Stop) {
	if s.status.Exit != nil || want.Ahead && !s.waits {
		return
	}
	kill := time.Now().Add(min(max(want.Grace, 0), maxGrace))
	switch {
	case s.stop == nil:
		s.stop = &stopRecord{Reason: want.Reason, Text: want.Text, Signal: want.Signal, KillMS: kill.UnixMilli(), kill: kill}
		s.log.Info("stopping rank", "reason", want.Reason, "text", want.Text, "grace", want.Grace)
	case kill.Before(s.stop.kill):
		s.stop.kill, s.stop.KillMS = kill, kill.UnixMilli()
	default:
		return
	}
	s.cancelStart(errStopped)
	s.poke()
}

// takeSecrets keeps values that came with an order.
func (s *state) takeSecrets(values *api.Secrets) {
	if values == nil || values.Version <= s.status.Secrets {
		return
	}
	if s.values == nil {
		close(s.secrets)
	}
	s.values, s.status.Secrets = values, values.Version
	s.tell(contact.WithinProgress)
	s.poke()
}

// setPaused takes in whether the rank shall stand still.
func (s *state) setPaused(paused bool) {
	if s.paused != nil && *s.paused == paused {
		return
	}
	s.paused = &paused
	s.poke()
}

// letBegin takes the controller's word, which is never taken back.
func (s *state) letBegin(begin bool) {
	if begin && !s.begin {
		s.begin = true
		s.poke()
	}
}

// setResize takes in what the controller wants the rank to have.
func (s *state) setResize(q *api.Resize) {
	if q == nil || s.resize != nil && s.resize.Seq == q.Seq {
		return
	}
	s.resize = q
	s.poke()
}

// setLimit takes in the run time that the rank shall have.
func (s *state) setLimit(ms int64) {
	if ms <= 0 || s.limitMS == ms {
		return
	}
	s.limitMS = ms
	s.poke()
}

// setSignals takes in the signals that the rank's program shall be sent.
func (s *state) setSignals(list []api.Signal) {
	if len(list) == 0 || list[len(list)-1].Seq <= s.status.Signalled {
		return
	}
	s.signals = list
	s.poke()
}
