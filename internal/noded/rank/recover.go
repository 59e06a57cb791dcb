package rank

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"time"

	"gbatch/cgroups"
	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/contact"
	"gbatch/internal/noded/images"
	"gbatch/internal/noded/record"
	"gbatch/oci"
	"gbatch/oci/boot"
	"gbatch/oci/journal"
	"gbatch/oci/result"
	"gbatch/oci/rmtree"
)

// Restore takes over a rank of an earlier daemon; nil: nothing of it ran. Where
// it cannot be told what became of the container, the rank is held as running:
// were it not listed, the controller would order it again, and it may be alive.
func Restore(n *Node, id job.RankID) *Rank {
	rec, err := record.Load(n.Dir(id))
	return restore(remember(n, id, rec, err))
}

// RestoreGuest is Restore for a guest, of which the journal in an owner's directory says this.
func RestoreGuest(n *Node, id, owner job.RankID, g *journal.Guest) *Rank {
	if g.Over {
		n.Past.AddGuest(id, g)
		return nil
	}
	rec, err := record.OfGuest(n.ContainerDir(owner), g)
	rec.Home = &owner
	r, boot := remember(n, id, rec, err)
	r.order.guest = true
	return restore(r, boot)
}

func restore(r *Rank, boot string) *Rank {
	n, id := r.node, r.order.id
	keep, err := r.inspect()
	if err != nil && boot != "" && boot != n.Boot {
		r.log.Error("take over rank of an earlier boot", "error", err)
		err = r.diedWithMachine()
	}
	if err != nil {
		r.log.Error("take over rank; trying again", "error", err)
		n.Health.Leftover(id, err)
		r.state.status.Phase = node.PhaseRunning
	}
	if !keep {
		return nil
	}
	if boot != n.Boot { // the clock from boot was another one
		for _, e := range []*node.Exit{r.past, r.state.status.Exit} {
			if e == nil {
				continue
			}
			if e.WallMS = 0; e.Message == lostText {
				e.Message = restartText
			}
		}
	}
	if r.state.status.Exit == nil {
		n.Cores.Claim(id, r.cores.CPUs)
		r.turn.Placed()
	}
	r.log.Info("rank taken over", "phase", string(r.state.status.Phase))
	return r
}

// diedWithMachine ends a rank of an earlier boot whose container's directory
// cannot be read: a power cut may leave files empty that were written shortly
// before. Nothing of it lives, and whether it ran is not known.
func (r *Rank) diedWithMachine() error {
	if err := rmtree.Remove(r.order.containerDir()); err != nil {
		return err
	}
	r.state.status.Phase = node.PhaseEnded
	r.state.status.Exit = &node.Exit{
		Code: 137, Signal: 9, Reason: job.NodeFail, EndedMS: time.Now().UnixMilli(),
		Message: restartText,
	}
	return nil
}

// remember makes a rank out of what an earlier daemon wrote down, and says in
// which boot of the machine that was.
func remember(n *Node, id job.RankID, rec record.Record, recErr error) (*Rank, string) {
	dir := n.Dir(id)
	r := newRank(n, id, rec.Order)
	r.link = rec.Link
	r.state.status.Image, r.state.status.Cores, r.state.status.Ports = rec.Digest, rec.Cores, rec.Ports
	signalled, err := record.Number(dir, record.FileSignalled)
	if r.state.status.Signalled = uint32(signalled); err != nil {
		r.state.status.Signalled = math.MaxUint32 // rather none than one twice
		r.log.Warn("no more signals will be sent to the rank", "error", err)
	}
	if r.state.stop, err = loadStop(dir); err != nil {
		r.log.Warn("why the rank was being stopped is not known any more", "error", err)
	}
	if r.unrecorded = recErr; recErr == nil {
		r.order.rec = &rec
	}
	if rec.Home != nil {
		r.order.at = *rec.Home
	} else {
		n.Disk.Restore(n.claim(&r.order))
	}
	for _, key := range rec.Cached {
		n.Data.Hold(key, id)
	}
	if set, err := cgroups.ParseCPUSet(rec.Cores); err == nil {
		r.cores.CPUs = set
	}
	ofSteps, err := images.LoadSteps(dir)
	if err != nil {
		r.log.Warn("which images steps of the rank have is not known any more", "error", err)
	}
	for _, digest := range append(append(rec.Before, rec.Digest), ofSteps.Digests()...) {
		if digest == "" {
			continue
		}
		if err := n.Images.Hold(id, digest); err != nil {
			r.log.Debug("image is not held", "error", err)
		}
	}
	return r, rec.Boot
}

// inspect finds out what became of a rank's container. Not to keep it means
// that nothing ran: the controller orders it again, with its credentials.
func (r *Rank) inspect() (keep bool, err error) {
	state, container, err := r.order.adopt()
	if err != nil {
		return true, err
	}
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	if r.unrecorded != nil && state != oci.StateNone && state != oci.StateReady {
		// What it may do, for how long, and what is to be saved of it is not known any more.
		r.log.Error("rank's record is gone or damaged; ending it", "error", r.unrecorded)
		r.state.stop = &stopRecord{Reason: job.NodeFail, Text: "the node's record of the job was damaged", Signal: "KILL", kill: time.Now()}
	}
	switch state {
	case oci.StateNone, oci.StateReady:
		r.node.Images.Drop(r.order.id)
		r.forgetGuest()
		return false, errors.Join(RemoveDir(r.order.dir), r.node.Disk.Release(r.order.id))
	case oci.StateAlive:
		r.container, r.state.container = container, container
		return true, nil
	}
	// It ended while no daemon looked.
	exit, err := r.order.exited()
	out := gpusDid(r.order.dir, exitOf(fenced(r.node.Dir(r.order.at), exit), r.state.stop, r.limits()))
	if err != nil {
		out = failedExit(err, r.state.stop)
	}
	r.state.status.StartedMS = out.StartedMS
	if r.order.hasOutcome(out) && !record.LoadOutcome(r.order.dir, out) || r.node.Hooks.Due(r.order.id, r.order.UUID, out) {
		r.past, r.state.status.Phase = out, node.PhaseRunning
		return true, nil
	}
	r.state.status.Phase, r.state.status.Exit = node.PhaseEnded, out
	return true, nil
}

// Resume goes on with a rank that was taken over. It returns false if the
// daemon goes first, which ends ctx.
func (r *Rank) Resume(ctx context.Context) (over bool) {
	defer r.turn.Pass()
	known, over := r.reinspect(ctx)
	if known && r.state.ended() {
		r.turn.Pass()
	}
	switch {
	case !known:
		return over
	case r.past != nil:
		r.conclude(ctx, r.past)
	case !r.state.ended():
		r.supervise(ctx)
	case !r.shelter.await(ctx, r.state):
		return false
	default:
		r.undo()
	}
	return r.end(ctx)
}

// reinspect tries until it is known what became of a rank. If nothing had run,
// the rank is over; if the daemon goes first, it is not.
func (r *Rank) reinspect(ctx context.Context) (known, over bool) {
	var pause client.Backoff
	for r.container == nil && r.past == nil && !r.state.ended() {
		if client.Sleep(ctx, pause.Next()) != nil {
			return false, false
		}
		keep, err := r.inspect()
		r.node.Health.Leftover(r.order.id, err)
		if err == nil && !keep {
			r.node.Cores.GiveBack(r.order.id)
			return false, true
		}
		r.node.Tell(contact.AtOnce)
	}
	return true, false
}

// begunAt is when a rank's program began. A daemon that started it has just
// been told; one that took it over goes by what that one noted, or asks the kernel how old its first process is,
// as the wall clock may have been set since, or goes by the runtime's mark, which the
// result takes the place of.
func (r *Rank) begunAt() time.Time {
	if r.image.Image != nil {
		return time.Now()
	}
	if rec, err := r.order.recorded(); err == nil && rec.Begun > 0 {
		return time.Now().Add(time.Duration(rec.Begun)*time.Millisecond - boot.Elapsed())
	}
	st, markErr := os.Stat(filepath.Join(r.order.containerDir(), "begun"))
	if age, err := boot.AgeOf(r.container.PID()); err == nil {
		at := time.Now().Add(-age)
		if len(r.order.Spec.Programs()) > 0 && markErr == nil && st.ModTime().Before(at) {
			return st.ModTime() // what begins before it counts, too
		}
		return at
	}
	if markErr == nil {
		return st.ModTime()
	}
	if exit, err := r.order.exited(); err == nil && !exit.Started.IsZero() {
		return exit.Started
	}
	return time.Now()
}

// endedBefore is how a rank ended here before that the controller orders again: it
// must not run a second time. Nil: it never ended here.
func (r *Rank) endedBefore() *node.Exit {
	if exit := r.node.Hooks.Ended(r.order.id, r.order.UUID); exit != nil {
		return exit
	}
	if exit, past := r.node.Past.Find(r.order.id, r.order.UUID); past {
		return exitOf(exit, nil, r.limits())
	}
	if !record.IsReleased(r.order.dir) {
		return nil
	}
	exit, err := result.Read(r.order.containerDir())
	if err != nil {
		return nil
	}
	stop, err := loadStop(r.order.dir)
	if err != nil {
		return nil
	}
	out := gpusDid(r.order.dir, exitOf(exit, stop, r.limits()))
	record.LoadOutcome(r.order.dir, out)
	return out
}
