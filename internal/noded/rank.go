package noded

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/cores"
	"gbatch/oci"
	"gbatch/oci/image"
	"gbatch/oci/userns"
)

// rank is one container's life on this node, from its order to the removal of
// its last trace. One goroutine takes it through that life; the agent's lock
// guards what others look at.
type rank struct {
	a     *Agent
	id    job.RankID
	dir   string
	order api.RunOrder // never with credentials
	log   *slog.Logger
	wake  chan struct{} // the stop or release changed; one is enough

	hasSecrets chan struct{} // closed when the first secrets have come

	// Only for the rank's own goroutine.
	login   *api.Credential // until the image is here
	img     *image.Image
	cores   cores.Grant
	mounts  []oci.Mount
	inputs  []oci.Mount
	cached  []string     // keys of inputs that are in the cache
	past    *node.Exit   // of a program that ended while no daemon looked, and is not concluded
	own     []string     // directories for the container's user
	written uint32       // version of the secrets in the container's files
	ids     userns.Map   // of its container; zero: the node's
	user    *os.File     // the user namespace, until the shim has it
	net     *rankNetwork // until the shim has it; nil: the node's, or already there
	shim    *oci.Shim
	hasSlot bool
	meter   *meter    // nil: nothing was measured yet
	ordered time.Time // zero: by an earlier daemon

	// Guarded by a.mu.
	status      node.RankStatus
	stop        *stopRecord
	secrets     *api.Secrets // nil: none came yet
	paused      *bool        // as ordered; nil: not told yet
	resize      *api.Resize
	signals     []api.Signal  // to be sent
	begin       bool          // its program may; of a gang, by the controller's word
	used        *node.LiveUse // nil: nothing was measured yet
	released    bool
	cancelStart context.CancelCauseFunc
}

func (a *Agent) newRank(id job.RankID, order api.RunOrder) *rank {
	r := &rank{
		a: a, id: id, dir: a.rankDir(id), login: order.Registry, wake: make(chan struct{}, 1), hasSecrets: make(chan struct{}),
		log:         a.log.With("rank", id.String(), "job", uint64(id.Job)),
		status:      node.RankStatus{ID: id, Phase: node.PhaseAccepted},
		cancelStart: func(error) {},
	}
	order.Registry = nil
	r.order = order
	return r
}

func (a *Agent) rankDir(id job.RankID) string { return filepath.Join(a.dirRanks(), id.String()) }

// boxOf is the container's directory of a rank.
func (a *Agent) boxOf(id job.RankID) string { return filepath.Join(a.rankDir(id), "box") }

func (r *rank) box() string { return filepath.Join(r.dir, "box") }

func (r *rank) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// start begins the life of a rank that was just ordered. Called with a.mu held.
func (a *Agent) start(r *rank) {
	ctx, cancel := context.WithCancelCause(a.ctx)
	r.cancelStart = cancel
	r.ordered = time.Now()
	// Ends with the rank, or with the daemon; Run waits for it.
	a.wg.Go(func() {
		defer cancel(nil)
		r.live(ctx)
	})
}

// live takes a new rank through its whole life.
func (r *rank) live(startCtx context.Context) {
	if r.revive() {
		r.end()
		return
	}
	err := r.prepare(startCtx)
	switch {
	case err == nil:
		r.supervise()
	case r.a.ctx.Err() != nil:
		// The daemon goes. Nothing ran, so nothing need be remembered: the
		// controller orders the rank again.
		r.undo()
		r.discard()
		return
	default:
		r.fail(err)
	}
	r.end()
}

// revive finds a rank that ended here before and that the controller orders
// again: it must not run a second time.
func (r *rank) revive() bool {
	exit, err := r.a.pastExit(r)
	if err != nil || exit == nil {
		return false
	}
	r.setEnded(exit)
	return true
}

// fail ends a rank that could not be started.
func (r *rank) fail(err error) {
	stop := r.stopNow()
	exit := failedExit(err, stop)
	if exit.Reason == job.Server {
		r.log.Error("start rank", "error", err)
	}
	r.a.health.diskError(err)
	r.undo()
	r.setEnded(exit)
}

// supervise waits for the container's end and sees to what shall happen to it
// until then. On return the rank has ended, or the daemon is going.
func (r *rank) supervise() {
	watch := newWatch(r)
	defer watch.close()
	for {
		watch.look()
		select {
		case <-r.shim.Done():
			watch.close()
			r.finish()
			return
		case <-watch.changed:
		case <-watch.measure.C:
			if watch.running {
				r.measure(false)
			}
		case <-r.wake:
		case <-watch.limit.C:
			watch.overLimit()
		case <-watch.warn.C:
			watch.early()
		case err := <-watch.stopped:
			watch.stopDone(err)
		case <-watch.progress.C:
			watch.lookAtProgress()
		case <-r.a.ctx.Done():
			return
		}
	}
}

// finish takes the container's result.
func (r *rank) finish() {
	r.a.reached("exited")
	exit, err := r.shim.Exit()
	stop := r.stopNow()
	var out *node.Exit
	if err != nil {
		r.log.Error("read the container's result", "error", err)
		out = failedExit(err, stop)
		out.StartedMS = r.startedMS()
	} else {
		out = exitOf(exit, stop, r.limits())
		r.a.measures.logs.Add(float64(exit.LogBytes))
		r.a.measures.oom.Add(float64(exit.OOMKills))
	}
	r.measure(true)
	r.conclude(gpusDid(r.dir, out))
}

// end waits for the controller to let go of an ended rank, removes what it had
// meanwhile, and forgets it. If the daemon goes first, the next one does that.
func (r *rank) end() {
	if !r.ended() {
		return
	}
	if !r.a.cleanAll(r) {
		return
	}
	r.a.reached("cleared")
	for !r.isReleased() {
		select {
		case <-r.wake:
		case <-r.a.ctx.Done():
			return
		}
	}
	r.a.reached("let go")
	r.a.forget(r)
	r.a.reached("forgotten")
}

// What follows reads and writes the guarded part.

func (r *rank) statusNow() node.RankStatus {
	s := r.status
	if s.Exit != nil {
		e := *s.Exit
		s.Exit = &e
	}
	return s
}

func (r *rank) change(within time.Duration, f func(*node.RankStatus)) {
	r.a.mu.Lock()
	f(&r.status)
	r.a.mu.Unlock()
	r.a.tell(within)
}

func (r *rank) setPhase(p node.Phase) {
	r.change(newsProgress, func(s *node.RankStatus) { s.Phase = p })
}

func (r *rank) setRunning(at time.Time) {
	r.change(newsRunning, func(s *node.RankStatus) {
		s.Phase, s.Progress, s.StartedMS = node.PhaseRunning, "", at.UnixMilli()
	})
	r.log.Info("rank runs", "pid", r.shim.PID())
	if !r.ordered.IsZero() {
		r.a.measures.launches.Observe(at.Sub(r.ordered).Seconds())
	}
	r.a.mapJobs()
}

func (r *rank) setEnded(e *node.Exit) {
	r.change(newsNow, func(s *node.RankStatus) {
		s.Phase, s.Progress, s.Exit = node.PhaseEnded, "", e
		if e.StartedMS > 0 {
			s.StartedMS = e.StartedMS // the container's own word is more exact
		}
	})
	r.a.measures.ended(e)
	r.a.mapJobs()
	r.log.Info("rank ended", "code", e.Code, "reason", e.Reason, "message", e.Message)
}

func (r *rank) startedMS() int64 {
	r.a.mu.Lock()
	defer r.a.mu.Unlock()
	return r.status.StartedMS
}

func (r *rank) ended() bool {
	r.a.mu.Lock()
	defer r.a.mu.Unlock()
	return r.status.Exit != nil
}

func (r *rank) isReleased() bool {
	r.a.mu.Lock()
	defer r.a.mu.Unlock()
	return r.released
}

// stopNow is a copy of the stop under way, if one is.
func (r *rank) stopNow() *stopRecord {
	r.a.mu.Lock()
	defer r.a.mu.Unlock()
	if r.stop == nil {
		return nil
	}
	s := *r.stop
	return &s
}

func sortStatuses(list []node.RankStatus) {
	slices.SortFunc(list, func(a, b node.RankStatus) int { return compareRanks(a.ID, b.ID) })
}
