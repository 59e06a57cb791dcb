package rank

import (
	"context"
	"errors"
	"time"

	"gbatch/internal/node"
	"gbatch/internal/noded/contact"
	"gbatch/internal/noded/record"
	"gbatch/oci/boot"
	"gbatch/oci/wire"
)

// watch is what the supervisor of one running container keeps an eye on: its
// phase, its time limit and the stop that may be asked for.
type watch struct {
	r       *Rank
	changed <-chan struct{} // the shim's phase
	running bool
	at      time.Time // since then; where it can be, by the clock that nobody sets
	part    string    // which of those before the job's program runs; "": that
	limit   *time.Timer
	warn    *time.Timer // the early warning of the limit

	measure  *time.Ticker  // what it uses
	progress *time.Ticker  // the file with the program's progress
	looking  chan struct{} // full while somebody looks at it

	frozen *bool // as this daemon left the processes; nil: not known
	told   bool  // that they could not be made to, and are tried

	acted   stopRecord         // the stop that stopping carries out
	cancel  context.CancelFunc // of stopping; nil: none under way
	stopped chan error         // its result
	retry   *time.Timer
}

// progressEvery is how often a program's progress is looked at.
const progressEvery = 3 * time.Second

func newWatch(r *Rank) *watch {
	w := &watch{r: r, limit: time.NewTimer(time.Hour), warn: time.NewTimer(time.Hour), stopped: make(chan error, 1), looking: make(chan struct{}, 1)}
	w.limit.Stop()
	w.warn.Stop()
	if r.image.Image != nil {
		w.frozen = new(false) // this daemon has just started it
	}
	w.measure = time.NewTicker(measureFirst)
	w.progress = time.NewTicker(progressEvery)
	if g := r.order.Spec.Gbatch; g == nil || g.ProgressFile == "" {
		w.progress.Stop()
	}
	return w
}

// close waits for a stop under way to notice the end.
func (w *watch) close() {
	w.limit.Stop()
	w.warn.Stop()
	w.progress.Stop()
	w.measure.Stop()
	if w.cancel != nil {
		w.cancel()
		<-w.stopped
		w.cancel = nil
	}
}

// look takes in what has changed.
func (w *watch) look(ctx context.Context) {
	phase, changed := w.r.container.Phase()
	w.changed = changed
	if phase == wire.PhaseExited {
		passEarly(w.r)
	}
	if phase == wire.PhaseRunning && !w.running {
		w.running = true
		w.begun()
	}
	if part := w.r.container.Part(); part != w.part {
		if w.part = part; part != "" {
			part = "runs " + part + ", which comes before the job"
		}
		w.r.state.setProgress(part)
	}
	if stop := w.r.state.stopNow(); stop != nil {
		w.carryOut(ctx, *stop)
	} else if w.running {
		w.pause()
		w.resize()
		w.relimit()
		w.signals()
	}
	if w.running {
		w.r.secrets.renew(&w.r.order, w.r.state)
	}
}

// begun notes the first instruction and arms the time limit, which counts from
// it also when the daemon was restarted since.
func (w *watch) begun() {
	w.at = w.r.begunAt()
	_ = w.r.slot.giveBack()
	if len(w.r.order.Allocation.GPUs) > 0 {
		w.r.measure(false) // where the counters of energy stand
	}
	w.r.setRunning(w.at)
	w.arm()
	w.noteBegun()
}

// noteBegun notes when the first of several programs began, for a daemon that takes the rank over: the process that runs
// then may be a later one's, and the mark of the begin is by a clock that may be set.
func (w *watch) noteBegun() {
	o := &w.r.order
	rec, err := o.recorded()
	if len(o.Spec.Programs()) == 0 || err == nil && rec.Begun > 0 {
		return
	}
	if err == nil {
		rec.Begun = (boot.Elapsed() - time.Since(w.at)).Milliseconds()
		err = o.saveRecord(rec)
	}
	if err != nil {
		w.r.log.Warn("a restart of the daemon could take the rank's begin for another time", "error", err)
	}
}

// early sends the signal that the job asked for some time before its limit. It
// is sent once, also when the daemon is restarted in between: rather not at all
// than twice, as a program that handles it once may end by the second.
func (w *watch) early() {
	r := w.r
	if r.state.stopNow() != nil {
		return
	}
	if err := errors.Join(r.order.need(), record.Mark(r.order.dir, fileWarned)); err != nil {
		r.log.Warn("a restart of the daemon could send the early warning again", "error", err)
	}
	name := r.order.Spec.Gbatch.WarnSignal
	if err := r.container.Signal(signalNumber(name)); err != nil {
		r.log.Warn("send early warning", "signal", name, "error", err)
		return
	}
	r.log.Info("told the program that its time limit is near", "signal", name)
}

// carryOut starts to stop the container, or does it sooner than it began to.
func (w *watch) carryOut(ctx context.Context, s stopRecord) {
	if w.cancel != nil {
		if !s.kill.Before(w.acted.kill) {
			return
		}
		w.cancel()
		<-w.stopped
	}
	if err := errors.Join(w.r.order.need(), saveStop(w.r.order.dir, s)); err != nil {
		w.r.log.Warn("a restart of the daemon would forget why the rank was stopped", "error", err)
	}
	w.r.node.Reached("stop noted")
	w.acted = s
	w.thaw()
	ctx, cancel := context.WithCancel(ctx)
	w.cancel = cancel
	container := w.r.container
	w.r.state.change(contact.AtOnce, func(st *node.RankStatus) { st.Stopping = true })
	// Ends when the container has, when a sooner stop takes its place, or with
	// the daemon; close waits for it.
	go func() {
		w.stopped <- container.Stop(ctx, signalNumber(s.Signal), max(0, time.Until(s.kill)))
	}()
}

// stopDone is called when a stop came to its end but the container did not:
// its processes wait in the kernel. It is tried again for as long as it takes.
func (w *watch) stopDone(ctx context.Context, err error) {
	w.cancel()
	w.cancel = nil
	select {
	case <-w.r.container.Done():
		return
	default:
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	w.r.log.Error("stop rank; trying again", "error", err)
	w.r.node.Health.Leftover(w.r.order.id, err)
	_ = sleepOr(w.r.container.Done(), stopRetry)
	w.r.state.poke()
}

// stopRetry is the pause between two tries to kill what does not die.
const stopRetry = 2 * time.Second

func sleepOr(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}
