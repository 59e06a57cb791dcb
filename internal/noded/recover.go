package noded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"gbatch/cgroups"
	"gbatch/internal/api"
	"gbatch/internal/job"
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
		if err := a.adopt(id, dir); err != nil {
			// One rank that cannot be settled does not keep the node from the
			// others, but no new job may meet its remains.
			a.log.Error("take over rank", "rank", id, "error", err)
			a.health.leftover(id, err)
		}
	}
	return a.sweepHost()
}

// adopt settles one rank's directory.
func (a *Agent) adopt(id job.RankID, dir string) error {
	state, shim, err := oci.Adopt(filepath.Join(dir, "box"))
	if err != nil {
		return err
	}
	if state == oci.StateNone || state == oci.StateReady {
		// Nothing ran. The controller orders it again, with its credentials.
		return removeRankDir(dir)
	}
	rec, recErr := loadRecord(dir)
	r := a.newRank(id, rec.Order)
	r.status.Image, r.status.Cores = rec.Digest, rec.Cores
	if r.stop, err = loadStop(dir); err != nil {
		r.log.Warn("why the rank was being stopped is not known any more", "error", err)
	}
	if recErr != nil {
		r.log.Error("rank's record is damaged; ending it", "error", recErr)
		r.stop = &stopRecord{Reason: job.NodeFail, Text: "the node's record of the job was damaged", Signal: "KILL", kill: time.Now()}
	}
	if rec.Digest != "" {
		if err := a.images.hold(id, rec.Digest); err != nil && state == oci.StateAlive {
			r.log.Warn("image of a running rank is not held", "error", err)
		}
	}
	if set, err := cgroups.ParseCPUSet(rec.Cores); err == nil {
		r.cores.CPUs = set
		if state == oci.StateAlive {
			a.cores.claim(id, set)
		}
	}
	a.ranks[id] = r
	r.shim = shim
	if state != oci.StateAlive {
		r.settled()
	}
	r.log.Info("rank taken over", "state", string(state))
	return nil
}

// settled is for a rank that ended while no daemon looked.
func (r *rank) settled() {
	exit, err := oci.ReadExit(r.box())
	out := exitOf(exit, r.stop, r.order.Allocation.MemBytes)
	if err != nil {
		out = failedExit(err, r.stop)
	}
	r.status.Phase, r.status.Exit = api.PhaseEnded, out
	r.status.StartedMS = out.StartedMS
}

// resume goes on with the ranks that were taken over. Called once, by Run.
func (a *Agent) resume() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.ranks {
		// Ends with the rank, or with the daemon; Run waits for it.
		a.wg.Go(func() {
			if !r.ended() {
				r.supervise()
			} else {
				r.undo()
			}
			r.end()
		})
	}
}

// sweepHost removes cgroups that belong to no rank that runs.
func (a *Agent) sweepHost() error {
	keep := map[string]bool{}
	for id, r := range a.ranks {
		keep[a.cgroupPath(id)] = r.status.Exit == nil
	}
	gone, err := cgroups.Sweep(a.cgroupPrefix(), func(path string) bool { return keep[path] })
	if len(gone) > 0 {
		a.log.Warn("removed cgroups without a rank", "cgroups", gone)
	}
	if err != nil {
		return fmt.Errorf("sweep cgroups: %w", err)
	}
	return nil
}

// begunAt is when a rank's program began: the time of the runtime's mark.
func (a *Agent) begunAt(r *rank) time.Time {
	if st, err := os.Stat(filepath.Join(r.box(), "begun")); err == nil {
		return st.ModTime()
	}
	return time.Now()
}

// pastExit is how a rank that was let go of ended, nil if it never was here. It
// is not among the kept ones after that.
func (a *Agent) pastExit(r *rank) (*api.Exit, error) {
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
	return exitOf(exit, stop, r.order.Allocation.MemBytes), nil
}
