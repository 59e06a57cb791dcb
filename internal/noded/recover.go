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
	"gbatch/internal/noded/record"
	"gbatch/oci/journal"
)

// recover finds out what an earlier daemon left and takes over what is worth
// it: containers that run, and results that the controller has not released.
// Everything else that carries our prefix goes.
func (a *Agent) recover() error {
	entries, err := os.ReadDir(a.dirRanks())
	if err != nil {
		return fmt.Errorf("read ranks: %w", err)
	}
	guests := findGuests(a)
	for _, e := range entries {
		dir := filepath.Join(a.dirRanks(), e.Name())
		id, err := record.ParseDir(e.Name())
		if err != nil {
			a.log.Warn("left alone: not a rank's directory", "path", dir)
			continue
		}
		if record.IsReleased(dir) || e.Name() != id.String() { // those put aside were released
			a.kept.add(id, dir)
			if uuid, owes := record.OwesLog(dir); owes {
				a.keeper.Add(keep.Source{ID: id, UUID: uuid, Dir: dir, Over: true})
			}
			continue
		}
		if _, guest := guests[id]; !guest { // else what is there is not all of it
			adopt(a, id, rank.Restore(a.node, id))
		}
	}
	for id, g := range guests {
		if record.IsReleased(a.node.Dir(id)) {
			continue // and the daemon died before that was in the journal
		}
		adopt(a, id, rank.RestoreGuest(a.node, id, g.owner, g.Guest))
	}
	a.shelter()
	a.kept.sort()
	err = errors.Join(a.sweepHost(), a.disk.Sweep())
	a.node.Reached("swept")
	return err
}

func adopt(a *Agent, id job.RankID, r *rank.Rank) {
	if r != nil {
		a.ranks[id] = r
		a.keepLog(r)
	}
	a.node.Reached("adopted")
}

// guest is what the journal of an owner's container says of a rank.
type guest struct {
	owner job.RankID
	*journal.Guest
}

// findGuests reads the journals of all containers. A rank that began in none of them and is in several was
// ordered several times, as it is when the daemon died before that.
func findGuests(a *Agent) map[job.RankID]guest {
	guests := map[job.RankID]guest{}
	journals, _ := filepath.Glob(filepath.Join(a.dirRanks(), "*", "box", journal.File))
	for _, path := range journals {
		box := filepath.Dir(path)
		owner, err := record.ParseDir(filepath.Base(filepath.Dir(box)))
		if err != nil {
			continue
		}
		list, err := journal.Read(box)
		if err != nil {
			a.log.Error("of tasks that ran in a container it may not be known how they ended", "rank", owner, "error", err)
		}
		for _, g := range list {
			id, err := job.ParseRankID(g.Name)
			if other, known := guests[id]; err != nil || known && !(other.Begun.IsZero() && other.Exit == nil) {
				continue
			}
			if _, err := os.Stat(filepath.Join(a.node.Dir(id), "box", "begun")); g.Begun.IsZero() && g.Exit == nil && err == nil {
				continue // it got a container of its own
			}
			guests[id] = guest{owner, g}
		}
	}
	return guests
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
