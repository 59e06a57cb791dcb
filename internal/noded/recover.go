package noded

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"gbatch/cgroups"
	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/oci"
)

// recover finds out what an earlier daemon left and takes over what is worth
// it: containers that run, and results that the controller has not let go of.
// Everything else that carries our prefix goes.
func (a *Agent) recover() error {
	entries, err := os.ReadDir(a.dirRanks())
	if err != nil {
		return fmt.Errorf("read ranks: %w", err)
	}
	for _, e := range entries {
		dir := filepath.Join(a.dirRanks(), e.Name())
		id, err := job.ParseRankID(e.Name())
		if err != nil {
			a.log.Warn("left alone: not a rank's directory", "path", dir)
			continue
		}
		if isLetGo(dir) {
			a.keptLog(id, dir)
			continue
		}
		a.adopt(id, dir)
		a.reached("adopted")
	}
	slices.SortFunc(a.kept, func(x, y keptRank) int { return x.ended.Compare(y.ended) })
	err = a.sweepHost()
	a.reached("swept")
	return err
}

// adopt takes one rank's directory over. Where it cannot be settled what became
// of the container, the rank is held as running: were it not listed, the
// controller would order it again, and it may be alive.
func (a *Agent) adopt(id job.RankID, dir string) {
	r, boot := a.remember(id, dir)
	keep, err := r.settle()
	if err != nil && boot != "" && boot != a.boot {
		r.log.Error("take over rank of an earlier boot", "error", err)
		err = r.diedWithMachine()
	}
	if err != nil {
		r.log.Error("take over rank; trying again", "error", err)
		a.health.leftover(id, err)
		r.status.Phase = node.PhaseRunning
	}
	if !keep {
		return
	}
	if r.status.Exit == nil {
		a.cores.Claim(id, r.cores.CPUs)
	}
	a.ranks[id] = r
	r.log.Info("rank taken over", "phase", string(r.status.Phase))
}

// diedWithMachine ends a rank of an earlier boot whose container's directory
// cannot be read: a power cut may leave files empty that were written shortly
// before. Nothing of it lives, and whether it ran is not known.
func (r *rank) diedWithMachine() error {
	if err := os.RemoveAll(r.box()); err != nil {
		return err
	}
	r.status.Phase = node.PhaseEnded
	r.status.Exit = &node.Exit{
		Code: 137, Signal: 9, Reason: job.NodeFail, EndedMS: time.Now().UnixMilli(),
		Message: "the machine restarted; how the program ended is not known",
	}
	return nil
}

// remember makes a rank out of what an earlier daemon wrote down, and says in
// which boot of the machine that was.
func (a *Agent) remember(id job.RankID, dir string) (*rank, string) {
	rec, recErr := loadRecord(dir)
	r := a.newRank(id, rec.Order)
	r.status.Image, r.status.Cores, r.status.Ports = rec.Digest, rec.Cores, rec.Ports
	var err error
	if r.status.Signalled, err = lastSignalled(dir); err != nil {
		r.status.Signalled = math.MaxUint32 // rather none than one twice
		r.log.Warn("no more signals will be sent to the rank", "error", err)
	}
	if r.stop, err = loadStop(dir); err != nil {
		r.log.Warn("why the rank was being stopped is not known any more", "error", err)
	}
	if recErr != nil && !errors.Is(recErr, os.ErrNotExist) {
		r.log.Error("rank's record is damaged; ending it", "error", recErr)
		r.stop = &stopRecord{Reason: job.NodeFail, Text: "the node's record of the job was damaged", Signal: "KILL", kill: time.Now()}
	}
	for _, key := range rec.Cached {
		a.data.cache.Hold(key, id.String())
	}
	if set, err := cgroups.ParseCPUSet(rec.Cores); err == nil {
		r.cores.CPUs = set
	}
	if rec.Digest != "" {
		if err := a.images.Hold(id, rec.Digest); err != nil {
			r.log.Debug("image is not held", "error", err)
		}
	}
	return r, rec.Boot
}

// settle finds out what became of a rank's container. Not to keep it means
// that nothing ran: the controller orders it again, with its credentials.
func (r *rank) settle() (keep bool, err error) {
	state, shim, err := oci.Adopt(r.box())
	if err != nil {
		return true, err
	}
	r.a.mu.Lock()
	defer r.a.mu.Unlock()
	switch state {
	case oci.StateNone, oci.StateReady:
		r.a.images.Drop(r.id)
		return false, removeRankDir(r.dir)
	case oci.StateAlive:
		r.shim = shim
		return true, nil
	}
	// It ended while no daemon looked.
	exit, err := oci.ReadExit(r.box())
	out := gpusDid(r.dir, exitOf(exit, r.stop, r.limits()))
	if err != nil {
		out = failedExit(err, r.stop)
	}
	r.status.StartedMS = out.StartedMS
	if r.concludes(out) && !applyVerdict(r.dir, out) {
		r.past, r.status.Phase = out, node.PhaseRunning
		return true, nil
	}
	r.status.Phase, r.status.Exit = node.PhaseEnded, out
	return true, nil
}

// resume goes on with the ranks that were taken over. Called once, by Run.
func (a *Agent) resume() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.ranks {
		// Ends with the rank, or with the daemon; Run waits for it.
		a.wg.Go(func() {
			if !r.retake() {
				return
			}
			switch {
			case r.past != nil:
				r.conclude(r.past)
			case !r.ended():
				r.supervise()
			default:
				r.undo()
			}
			r.end()
		})
	}
}

// retake tries to settle a rank until that works. It returns false if nothing
// had run, or if the daemon goes first.
func (r *rank) retake() bool {
	var pause client.Backoff
	for r.shim == nil && r.past == nil && !r.ended() {
		if client.Sleep(r.a.ctx, pause.Next()) != nil {
			return false
		}
		keep, err := r.settle()
		r.a.health.leftover(r.id, err)
		if err == nil && !keep {
			_ = r.giveCores()
			r.a.mu.Lock()
			delete(r.a.ranks, r.id)
			r.a.mu.Unlock()
			return false
		}
		r.a.tell(newsNow)
	}
	return true
}

// sweepHost removes cgroups and networks that belong to no rank that runs.
func (a *Agent) sweepHost() error {
	keep := map[string]bool{}
	for id, r := range a.ranks {
		keep[a.host.CgroupPath(id)] = r.status.Exit == nil
	}
	gone, err := cgroups.Sweep(a.host.CgroupPrefix(), func(path string) bool { return keep[path] })
	if len(gone) > 0 {
		a.log.Warn("removed cgroups without a rank", "cgroups", gone)
	}
	if err != nil {
		return fmt.Errorf("sweep cgroups: %w", err)
	}
	if err := a.sweepNetwork(); err != nil {
		return fmt.Errorf("sweep networks: %w", err)
	}
	return nil
}

// begunAt is when a rank's program began. A daemon that started it has just
// been told; one that took it over goes by the runtime's mark, which the
// result takes the place of.
func (a *Agent) begunAt(r *rank) time.Time {
	if r.img != nil {
		return time.Now()
	}
	if st, err := os.Stat(filepath.Join(r.box(), "begun")); err == nil {
		return st.ModTime()
	}
	if exit, err := oci.ReadExit(r.box()); err == nil && !exit.Started.IsZero() {
		return exit.Started
	}
	return time.Now()
}

// pastExit is how a rank that was let go of ended, nil if it never was here. It
// is not among the kept ones after that.
func (a *Agent) pastExit(r *rank) (*node.Exit, error) {
	if !isLetGo(r.dir) {
		return nil, nil
	}
	exit, err := oci.ReadExit(r.box())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	stop, err := loadStop(r.dir)
	if err != nil {
		return nil, err
	}
	a.unkeep(r.id)
	out := gpusDid(r.dir, exitOf(exit, stop, r.limits()))
	applyVerdict(r.dir, out)
	return out, nil
}
