package noded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"gbatch/cgroups"
	"gbatch/internal/job"
	"gbatch/internal/noded/keep"
	"gbatch/internal/noded/network"
	"gbatch/internal/noded/rank"
)

// recover finds out what an earlier daemon left and takes over what is worth
// it: containers that run, and results that the controller has not released.
// Everything else that carries our prefix goes.
func (a *Agent) recover() error {
	entries, err := os.ReadDir(a.dirRanks())
	if err != nil {
		return fmt.Errorf("read ranks: %w", err)
	}
	for _, e := range entries {
		dir := filepath.Join(a.dirRanks(), e.Name())
		id, err := rank.ParseDir(e.Name())
		if err != nil {
			a.log.Warn("left alone: not a rank's directory", "path", dir)
			continue
		}
		if rank.IsReleased(dir) || e.Name() != id.String() { // those put aside were released
			a.kept.add(id, dir)
			if uuid, owes := rank.OwesLog(dir); owes {
				a.keeper.Add(keep.Source{ID: id, UUID: uuid, Dir: dir, Over: true})
			}
			continue
		}
		if r := rank.Restore(a.node, id); r != nil {
			a.ranks[id] = r
			a.keepLog(r)
		}
		a.node.Reached("adopted")
	}
	a.shelter()
	a.kept.sort()
	err = errors.Join(a.sweepHost(), a.disk.Sweep())
	a.node.Reached("swept")
	return err
}

// shelter notes for each rank in whose container another one runs that it does.
func (a *Agent) shelter() {
	for _, r := range a.ranks {
		if owner := a.ranks[r.Place()]; owner != nil && owner != r && r.Status().Exit == nil && r.Container() != nil {
			owner.Shelter(r)
		}
	}
}

// resume goes on with the ranks that were taken over. Called once, by Run.
func (a *Agent) resume() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, r := range a.ranks {
		// Ends with the rank, or with the daemon; Run waits for it.
		a.wg.Go(func() {
			if r.Resume(a.ctx) {
				a.forget(id, r)
			}
		})
	}
}

// sweepHost removes cgroups and networks that belong to no rank that runs.
func (a *Agent) sweepHost() error {
	groups, networks := map[string]bool{}, map[job.RankID]network.Kept{}
	for _, r := range a.all() {
		if s := r.Status(); s.Exit == nil {
			kept := rank.Kept(r)
			if owner := a.ranks[r.Place()]; owner != nil {
				kept.Link = rank.Kept(owner).Link
			}
			groups[a.host.CgroupPath(r.Place())], networks[r.Place()] = true, kept
		}
	}
	gone, err := cgroups.Sweep(a.host.CgroupPrefix(), func(path string) bool { return groups[path] || a.hooks.Group(path) })
	if len(gone) > 0 {
		a.log.Warn("removed cgroups without a rank", "cgroups", gone)
	}
	if err != nil {
		return fmt.Errorf("sweep cgroups: %w", err)
	}
	owners, err := a.network.Sweep(networks)
	if len(owners) > 0 {
		a.log.Warn("removed networks without a rank", "owners", owners)
	}
	if err != nil {
		return fmt.Errorf("sweep networks: %w", err)
	}
	return nil
}
