package rank

import (
	"fmt"
	"strconv"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/exporter"
	"gbatch/internal/noded/network"
	"gbatch/oci"
)

// Status is what the controller is told of the rank.
func (r *Rank) Status() node.RankStatus { return r.state.now() }

// UUID is that of the rank's job, which tells it from another of the same number;
// empty if the rank's record is damaged.
func (r *Rank) UUID() string { return r.order.UUID }

// Leaves says whether the controller has let go of the rank and it has not ended.
func (r *Rank) Leaves() bool { return r.state.isReleased() && !r.state.ended() }

// Told says that the rank has ended, that the controller has let go of it, and that it
// is here only for those that run in its container after it.
func (r *Rank) Told() bool {
	s := r.state
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.released && !s.again && s.status.Exit != nil && s.sheltering
}

// Order is what was ordered of the rank. Only its allocation ever changes.
func (r *Rank) Order() *api.RunOrder { return &r.order.RunOrder }

// Kept is what is kept of the network of a rank that an earlier daemon began.
func Kept(r *Rank) network.Kept {
	return network.Kept{Link: r.link, Ports: r.Status().Ports, Order: &r.order.RunOrder}
}

// Use is what a rank that runs has used, nil if nothing was measured yet.
func (r *Rank) Use() *api.RankUse {
	s := r.state
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used == nil || s.status.Phase != node.PhaseRunning {
		return nil
	}
	return &api.RankUse{ID: s.status.ID, UUID: s.status.UUID, LiveUse: *s.used}
}

// Container is that of a rank that runs.
func (r *Rank) Container() *oci.Container {
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	return r.state.container
}

// Holds says whether the rank is a user's and has the ids from first on, or those
// that the node gave before controllers did.
func (r *Rank) Holds(user string, first uint32) bool {
	return r.order.User == user && (r.order.IDs == first || r.order.IDs == 0)
}

// ForMetrics is the rank as metrics tell of it.
func (r *Rank) ForMetrics() exporter.Container {
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	o := &r.order
	return exporter.Container{ID: o.id, Place: o.at, Job: jobName(o.id, o.Array), User: o.User, Project: o.Project, Mem: o.Allocation.MemBytes, GPUs: o.gpus()}
}

func jobName(id job.RankID, task *job.ArrayTask) string {
	if task != nil {
		return fmt.Sprintf("%d_%d", task.Parent, task.Index)
	}
	return strconv.FormatUint(uint64(id.Job), 10)
}

// CheckGPUs ends the rank if one of its GPUs is lost: it may hang on it for good.
func (r *Rank) CheckGPUs() {
	if lost := r.node.Devices.Lost(r.ForMetrics().GPUs); lost != "" {
		r.Stop(Stop{Signal: r.order.stopSignal(), Grace: r.order.grace(), Reason: job.GPUError, Text: lost})
	}
}
