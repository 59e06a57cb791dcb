package rank

import (
	"context"
	"errors"
	"os"
	"time"

	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/record"
	"gbatch/internal/noded/storage"
	"gbatch/oci"
	"gbatch/oci/result"
)

// How a rank ends, in this order: readExit says how the container ended, or
// fail that there was none; conclude sees to what else decides how the rank
// ended; over runs the site's epilog and has the end told; remove takes away what
// it has on the host; then the controller releases it, and PutAway leaves its log. A crash between any two
// is made up for by the next daemon, which finds by its files how far it was.

// fail ends a rank that could not be started.
func (r *Rank) fail(ctx context.Context, err error) {
	exit := failedExit(err, r.state.stopNow())
	if exit.Reason == job.Server {
		r.log.Error("start rank", "error", err)
	}
	r.node.Health.DiskError(err)
	if r.container == nil {
		r.shelter.leave()
	}
	r.over(ctx, exit)
}

// over runs what the site wants to be run after a rank, gives back what others wait
// for, and has the end told. Without an end the daemon is going, and the next one
// goes on here.
func (r *Rank) over(ctx context.Context, out *node.Exit) {
	if !epilog(ctx, facts{r.node, &r.order, r.cores}, r.state, out) {
		return
	}
	r.undo()
	r.shelter.offer() // before the end is told: the next order comes with the answer
	r.node.Reached("undone")
	r.setEnded(out)
	r.turn.Pass()
	r.node.Reached("told")
}

// readExit is how the container ended, by its shim's word.
func (r *Rank) readExit() *node.Exit {
	r.node.Reached("exited")
	exit, err := r.container.Exit()
	stop, now := r.state.stopNow(), r.state.now()
	var out *node.Exit
	if err != nil {
		r.log.Error("read the container's result", "error", err)
		out = lostExit(err, stop, now)
	} else {
		out = lastWord(fenced(r.node.Dir(r.order.at), exit), stop, r.limits(), now)
		r.node.Counters.Output(float64(exit.LogBytes), float64(exit.OOMKills))
	}
	r.measure(true)
	return gpusDid(r.order.dir, out)
}

// conclude does what comes between the program's end and telling of it: saving
// the outputs, looking at the progress. Without a result the daemon is going,
// and the next one goes on here.
func (r *Rank) conclude(ctx context.Context, out *node.Exit) {
	r.blameGPU(ctx, out)
	if !r.shelter.free(r.container, out.CPUSeconds, r.secrets.written) {
		r.killRest()
	}
	r.node.Reached("cleaned")
	if r.order.hasOutcome(out) && !record.LoadOutcome(r.order.dir, out) {
		r.checkProgress(out)
		if !r.saveOutputs(ctx, out) {
			return
		}
		r.node.Reached("saved")
		if err := errors.Join(r.order.need(), record.SaveOutcome(r.order.dir, out)); err != nil {
			r.log.Warn("a restart of the daemon could save the outputs again", "error", err)
		}
		r.node.Reached("concluded")
	}
	r.over(ctx, out)
}

// hasOutcome says whether more than the program's exit decides how a rank ended.
func (o *order) hasOutcome(out *node.Exit) bool {
	return o.Spec.LeavesFiles() && out.StartedMS > 0 && !o.Spec.Waits(o.id.Rank)
}

// killRest sees to it that nothing of an ended container still runs before its
// cores and GPUs are called free. Usually the shim has left nothing.
func (r *Rank) killRest() {
	g, err := r.node.Host.Cgroups.Find(r.node.Host.CgroupPath(r.order.at))
	if err != nil || !g.Exists() {
		return
	}
	err = errors.Join(g.Kill(killTimeout), g.Remove())
	r.node.Health.Leftover(r.order.id, err)
	if err != nil {
		r.log.Error("end what is left of the container", "error", err)
	}
}

const killTimeout = 5 * time.Second

// end removes what an ended rank has while the controller takes note of its
// end, and waits for its release. It returns false if the daemon goes first:
// the next one does the rest.
func (r *Rank) end(ctx context.Context) (over bool) {
	if !r.state.ended() || !r.shelter.await(ctx, r.state) || !r.remove(ctx) {
		return false
	}
	r.node.Reached("cleared")
	for !r.state.isReleased() {
		select {
		case <-r.state.wake:
		case <-ctx.Done():
			return false
		}
	}
	r.node.Reached("let go")
	return true
}

// remove removes what an ended rank still has on the host but its log: its own
// writes may be many, so this comes after the end was told. It is tried until
// it works; false means that the daemon went first.
func (r *Rank) remove(ctx context.Context) bool {
	n, id := r.node, r.order.id
	clean := r.cleanHost
	if r.order.at != id {
		clean = guest{r}.clean
	} else {
		r.killRest()
	}
	var pause client.Backoff
	for {
		err := clean()
		n.Health.Leftover(id, err)
		if err == nil {
			n.Images.Drop(id)
			return true
		}
		r.log.Error("clean up rank; trying again", "error", err)
		if client.Sleep(ctx, pause.Next()) != nil {
			return false
		}
	}
}

// cleanHost removes all that the rank has on the host but its log.
func (r *recipe) cleanHost() error {
	n, id := r.node, r.order.id
	// What it wrote goes first: a damaged file system of its own goes as a whole.
	err := errors.Join(os.RemoveAll(r.order.launchDir()), n.Disk.Release(id), r.cleanContainer(), storage.Unbind(r.binds.dir), n.Network.Detach(id))
	if err == nil {
		err = n.Data.Drop(id) // nobody has it mounted any more
	}
	return err
}

// cleanContainer removes what its container left on the host.
func (r *recipe) cleanContainer() error {
	if rec := r.order.rec; rec != nil && rec.Boot != "" && rec.Boot != r.node.Boot {
		return oci.CleanupEarlier(r.order.containerDir())
	}
	return oci.Cleanup(r.order.containerDir())
}

// discard removes what a rank that never ran has.
func (r *Rank) discard() {
	r.node.Images.Drop(r.order.id)
	r.forgetGuest()
	if err := r.node.Network.Detach(r.order.id); err != nil {
		r.log.Error("remove network of rank that never ran", "error", err)
	}
	if err := errors.Join(r.cleanContainer(), RemoveDir(r.order.dir), r.node.Disk.Release(r.order.id)); err != nil {
		r.log.Error("remove rank that never ran", "error", err)
	}
}

// PutAway leaves of a rank that was released its log, and says whether there
// is one.
func (r *Rank) PutAway() (kept bool) {
	var err error
	var exit *result.Exit // of a guest
	if r.order.guest {
		if exit, err = guestEnd(r); err == nil {
			kept, err = r.order.leaveFiles(exit)
		}
	} else if kept = record.Has(r.order.dir); !kept {
		err = RemoveDir(r.order.dir) // it never ran: there is no log
	}
	if kept {
		err = record.MarkReleased(r.order.dir)
	}
	if err != nil {
		r.log.Error("put rank away", "error", err)
	}
	released(r, kept, exit)
	r.log.Debug("rank forgotten")
	return kept && err == nil
}
