package noded

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/exporter"
	"gbatch/internal/noded/inside"
	"gbatch/internal/noded/rank"
	"gbatch/internal/noded/record"
	"gbatch/oci"
	"gbatch/oci/logs"
)

// all are the ranks that are here, by id.
func (a *Agent) all() []*rank.Rank {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []*rank.Rank
	for _, id := range slices.SortedFunc(maps.Keys(a.ranks), compareRanks) {
		list = append(list, a.ranks[id])
	}
	return list
}

func compareRanks(a, b job.RankID) int {
	return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Task, b.Task), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Rank, b.Rank))
}

// containers lists those that have not ended, by id, and counts all by phase.
func (a *Agent) containers() (list []exporter.Container, phases map[node.Phase]int) {
	phases = map[node.Phase]int{}
	for _, r := range a.all() {
		s := r.Status()
		phases[s.Phase]++
		if s.Exit == nil {
			list = append(list, r.ForMetrics())
		}
	}
	return list, phases
}

// holdsIDs says whether a rank that has not ended is a user's and may have the ids
// from first on.
func (a *Agent) holdsIDs(user string, first uint32) bool {
	return slices.ContainsFunc(a.all(), func(r *rank.Rank) bool { return r.Holds(user, first) && (r.Status().Exit == nil || r.Shelters()) })
}

// lodges says whether a rank is here that runs, or ran, in another one's container.
func lodges(a *Agent, owner job.RankID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, r := range a.ranks {
		if id != owner && r.Place() == owner {
			return true
		}
	}
	return false
}

// leaving says whether a rank that nobody wants any more has not ended, or its
// epilog has not.
func (a *Agent) leaving() bool {
	if a.hooks.Leaving() {
		return true
	}
	a.mu.Lock() // each start asks: they are not put in order for it
	defer a.mu.Unlock()
	for _, r := range a.ranks {
		if r.Leaves() {
			return true
		}
	}
	return false
}

// pulling says whether a rank waits for its image.
func (a *Agent) pulling() bool {
	_, phases := a.containers()
	return phases[node.PhasePulling] > 0
}

// portHolder is the job that has a port of the node's.
func (a *Agent) portHolder(port uint16) (job.Number, bool) {
	for _, r := range a.all() {
		s := r.Status()
		if s.Exit == nil && slices.ContainsFunc(s.Ports, func(m job.PortMapping) bool { return m.HostPort == int(port) }) {
			return s.ID.Job, true
		}
	}
	return 0, false
}

// ranksForStreams is what streams see of the node.
type ranksForStreams struct{ a *Agent }

// status is the rank that is here, if it is of that job.
func (f ranksForStreams) status(id job.RankID, uuid string) (r *rank.Rank, s node.RankStatus) {
	f.a.mu.Lock()
	defer f.a.mu.Unlock()
	r = f.a.ranks[id]
	if r == nil || !node.SameJob(r.UUID(), uuid) {
		return nil, s
	}
	return r, r.Status()
}

// Container is that of a rank that runs here. A rank that is being taken over from an earlier daemon does so in a
// moment, which is waited for.
func (f ranksForStreams) Container(ctx context.Context, id job.RankID, uuid string) (*oci.Container, error) {
	deadline := time.Now().Add(takeOverWait)
	for {
		r, s := f.status(id, uuid)
		switch {
		case r == nil || s.Exit != nil:
			return nil, fmt.Errorf("rank %d of job %d has ended", id.Rank, id.Job)
		case s.Phase == node.PhaseRunning:
			return r.Container(), nil
		case s.Phase != node.PhaseAccepted || r.Container() == nil || time.Now().After(deadline):
			return nil, fmt.Errorf("rank %d of job %d is %s: it can be entered only while it runs", id.Rank, id.Job, s.Phase)
		}
		if client.Sleep(ctx, takeOverPause) != nil {
			return nil, fmt.Errorf("rank %d of job %d is being taken over by the node's daemon, which was restarted: try again", id.Rank, id.Job)
		}
	}
}

const (
	takeOverWait  = 10 * time.Second
	takeOverPause = 20 * time.Millisecond
)

// Coming says that a rank is here and has not ended, or shall be begun.
func (f ranksForStreams) Coming(id job.RankID, uuid string) bool {
	r, s := f.status(id, uuid)
	if r != nil {
		return s.Exit == nil
	}
	f.a.mu.Lock()
	defer f.a.mu.Unlock()
	o, waits := f.a.later[id]
	return waits && node.SameJob(o.UUID, uuid)
}

// Tools is the program for all containers.
func (f ranksForStreams) Tools() string {
	if f.a.node.Programs == "" {
		return ""
	}
	return filepath.Join(f.a.node.Programs, inside.Rank)
}

// Hold makes a rank's processes stand still.
func (f ranksForStreams) Hold(ctx context.Context, id job.RankID, uuid string) (<-chan struct{}, func(), error) {
	r, s := f.status(id, uuid)
	if r == nil || s.Exit != nil || s.Phase != node.PhaseRunning {
		return nil, nil, fmt.Errorf("rank %d of job %d has ended", id.Rank, id.Job)
	}
	return rank.Hold(ctx, r)
}

// MaxImage is the bound of images here: a larger one could not be pulled again.
func (f ranksForStreams) MaxImage() int64 { return int64(f.a.cfg.Images.MaxSize) }

// Log opens the log of a rank that runs or ran here. The error wraps fs.ErrNotExist where there is none.
func (f ranksForStreams) Log(id job.RankID, uuid string) (*logs.Log, error) {
	if r, _ := f.status(id, uuid); r != nil {
		return rank.OpenLog(r)
	}
	dir := record.FindContainer(f.a.node.Dir(id), uuid)
	if dir == "" {
		return nil, fs.ErrNotExist
	}
	return oci.OpenLog(dir)
}
