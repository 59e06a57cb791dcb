package rank

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/contact"
	"gbatch/internal/noded/launches"
	"gbatch/oci"
)

// state is what others may see of a rank, and what the controller has ordered
// since the rank was accepted. The rank's own goroutine looks at it when it is
// woken.
type state struct {
	log     *slog.Logger
	tell    func(within time.Duration) // asks for a sync
	wake    chan struct{}              // what was ordered has changed; one is enough
	secrets chan struct{}              // closed when the first secrets have come

	mu          sync.Mutex
	status      node.RankStatus
	stop        *stopRecord
	values      *api.Secrets // nil: none came yet
	paused      *bool        // as ordered; nil: not told yet
	holds       []*hold
	resize      *api.Resize
	limitMS     int64        // run time as ordered last; 0: as the order to run has it
	signals     []api.Signal // to be sent
	cancelSteps []uint32     // that shall end, of those that srun has started
	launches    *launches.Socket
	waits       bool           // for its turn: nothing of it was done
	begin       bool           // its program may; of a gang, by the controller's word
	used        *node.LiveUse  // nil: nothing was measured yet
	container   *oci.Container // set before the phase running is
	released    bool
	again       bool // ordered since it was released
	sheltering  bool // others run, or may, in what was its container
	cancelStart context.CancelCauseFunc
}

func newState(id job.RankID, log *slog.Logger, tell func(time.Duration)) *state {
	return &state{
		log: log, tell: tell, wake: make(chan struct{}, 1), secrets: make(chan struct{}),
		status:      node.RankStatus{ID: id, Phase: node.PhaseAccepted},
		cancelStart: func(error) {},
	}
}

func (s *state) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// now is a copy of the status.
func (s *state) now() node.RankStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.status
	if out.Exit != nil {
		e := *out.Exit
		out.Exit = &e
	}
	return out
}

// change changes the status, and has it told within the given time.
func (s *state) change(within time.Duration, f func(*node.RankStatus)) {
	s.mu.Lock()
	f(&s.status)
	s.mu.Unlock()
	s.tell(within)
}

func (s *state) setPhase(p node.Phase) {
	s.change(contact.WithinProgress, func(st *node.RankStatus) { st.Phase = s.told(p) })
}

// told is what others hear of a phase: nothing before the rank's turn, as it may still be taken back.
func (s *state) told(p node.Phase) node.Phase {
	if s.waits {
		return node.PhaseAccepted
	}
	return p
}

// setProgress says how far a part of the start or the end is; empty: it is done.
func (s *state) setProgress(text string) {
	within := contact.WithinPull
	if text == "" {
		within = contact.WithinProgress
	}
	s.change(within, func(st *node.RankStatus) { st.Progress = text })
}

// setShim notes the container that runs.
func (s *state) setContainer(container *oci.Container) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.container = container
}

// startContext is ended by a stop, with errStopped as its cause.
func (s *state) startContext(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancelStart = cancel
	if s.stop != nil {
		cancel(errStopped)
	}
	return ctx, cancel
}

// errStopped is the cause by which a stop breaks off the steps of a start.
var errStopped = errors.New("stopped before the start")

func (s *state) ended() bool { return s.now().Exit != nil }

func (s *state) isReleased() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.released
}

// takeTurn says that the rank is about to begin: from here on it is not taken back. An error: it was.
func (s *state) takeTurn() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waits = false
	if s.stop != nil {
		return errStopped
	}
	return nil
}

func (s *state) mayBegin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begin
}

// stopNow is a copy of the stop under way, if one is.
func (s *state) stopNow() *stopRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop == nil {
		return nil
	}
	c := *s.stop
	return &c
}

// secretsNow is nil while there are none.
func (s *state) secretsNow() *api.Secrets {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values
}

// awaitSecrets waits for secrets that a restart of the daemon lost.
func (s *state) awaitSecrets(ctx context.Context) error {
	select {
	case <-s.secrets:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
