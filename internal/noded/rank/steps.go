package rank

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gbatch/internal/node"
	"gbatch/internal/noded/contact"
	"gbatch/internal/noded/cores"
	"gbatch/internal/noded/data"
	"gbatch/internal/noded/devices"
	"gbatch/internal/noded/disk"
	"gbatch/internal/noded/network"
	"gbatch/internal/noded/redirect"
	"gbatch/oci"
	"gbatch/oci/handed"
)

// step is one part of a rank's start, not a step of the controller nor one of srun's.
// Undo takes back what do did, works without it and twice, and so cleans up after a
// crash anywhere in do.
type step struct {
	name string
	do   func(context.Context) error
	undo func() error
}

// steps are done in this order and undone in the reverse. What is durable when:
// record comes before container, so that whatever may have run is known. A line names
// the parts of the node and of the rank that the step may touch; a method of the rank
// itself may touch all of it.
func (r *Rank) steps() []step {
	n, o, s := r.node, &r.order, r.state
	return []step{
		{"user", func(context.Context) error { return r.user.find(n, o) }, nothing},
		{"image", func(ctx context.Context) error { return r.pullAll(ctx) }, nothing},     // let go by remove, once nothing is mounted
		{"disk", func(context.Context) error { return n.Disk.Take(n.claim(o)) }, nothing}, // gone with remove
		{"inputs", r.fetch, nothing}, // likewise
		{"room", func(ctx context.Context) error { return awaitLeavers(ctx, n, s) }, nothing},
		{"fit", func(context.Context) error { return refuseUnfit(n) }, nothing},
		{"cores", func(context.Context) (err error) {
			r.cores, err = takeCores(n.Cores, n.Devices, o, s)
			r.turn.Placed()
			return err
		},
			func() error { n.Cores.GiveBack(o.id); return nil }},
		{"prolog", func(ctx context.Context) error { return prolog(ctx, facts{n, o, r.cores}, s) }, nothing}, // the epilog undoes it, when the rank is over
		{"slot", r.slot.take, r.slot.giveBack},
		{"storage", func(context.Context) error { return r.bindAll() }, r.unbindAll},
		{"secrets", func(context.Context) error { return r.secrets.mount(o, s) }, nothing},                                                // goes with the storage
		{"network", func(context.Context) (err error) { r.net, err = joinNetwork(n.Network, &r.user, o, s); return err }, r.leaveNetwork}, // the host's part goes with remove
		{"files", func(context.Context) error { return furnish(r) }, nothing},                                                             // also with the storage
		{"record", func(context.Context) error { return r.record(s) }, nothing},
		{"gang", func(ctx context.Context) error { return awaitGang(ctx, o.Ranks, &r.slot, s) }, nothing},
		{"container", r.startContainer, nothing}, // its directory goes with remove
	}
}

// nothing is the undo of steps that leave only what goes later, with all that the rank has
// on disk: see remove. That is slow, and nobody waits for it.
func nothing() error { return nil }

// prepare does all steps up to a started container. A stop breaks it off.
func (r *Rank) prepare(ctx context.Context) error {
	if done, err := (guest{r}).prepare(ctx); done || err != nil {
		return err
	}
	return follow(ctx, r.node, r.steps())
}

// follow does steps in their order.
func follow(ctx context.Context, n *Node, steps []step) error {
	for _, s := range steps {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		n.Reached("before " + s.name)
		began := time.Now()
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		n.Counters.Step(s.name, time.Since(began))
	}
	n.Reached("started")
	return nil
}

// undo takes everything back that others wait for: cores, slot, storage. What
// is slow to remove is left to remove.
func (r *Rank) undo() {
	steps := r.steps()
	for i := len(steps) - 1; i >= 0; i-- {
		err := steps[i].undo()
		r.node.Health.Leftover(r.order.id, err)
		if err != nil {
			r.log.Error("undo step", "step", steps[i].name, "error", err)
		}
	}
}

// claim is what a rank writes on the node's disk.
func (n *Node) claim(o *order) disk.Claim {
	c := disk.Claim{ID: o.id, User: o.User}
	if g := o.Spec.Gbatch; g != nil {
		c.Asked = int64(g.DiskGB) << 30
		if len(g.Inputs) > 0 {
			c.Inputs = n.Data.RankDir(o.id)
		}
	}
	return c
}

// fetch brings the inputs; what the container writes is counted from then on.
func (r *Rank) fetch(ctx context.Context) (err error) {
	if r.inputs, err = r.node.Data.Fetch(ctx, r.data()); err != nil {
		return err
	}
	return r.node.Disk.Bound(r.order.id)
}

// data is the rank as its inputs and outputs need it.
func (r *Rank) data() data.Rank {
	return data.Rank{
		ID: r.order.id, Order: &r.order.RunOrder, Dir: r.order.dir, ContainerDir: r.order.containerDir(),
		Storage: r.node.Storage, Tenant: r.tenant, Progress: r.state.setProgress, DiskError: r.node.Health.DiskError, Log: r.log,
		Secrets: func() map[string]string {
			if s := r.state.secretsNow(); s != nil {
				return s.Values
			}
			return nil
		},
	}
}

// slot is one of the places in which containers may be starting: many more at once
// than there are cores make each start slower and none faster.
type slot struct {
	places chan struct{}
	held   bool
}

func (s *slot) take(ctx context.Context) error {
	select {
	case s.places <- struct{}{}:
		s.held = true
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *slot) giveBack() error {
	if s.held {
		s.held = false
		<-s.places
	}
	return nil
}

func takeCores(m *cores.Map, d devices.Devices, o *order, s *state) (cores.Grant, error) {
	g, err := m.Take(o.id, o.Allocation.CPUs, d.Near(o.gpus()))
	if err == nil {
		s.change(contact.WithinProgress, func(st *node.RankStatus) { st.Cores = g.CPUs.String() })
	}
	return g, err
}

func joinNetwork(n *network.Network, u *user, o *order, s *state) (*network.Attachment, error) {
	a, space, err := n.Join(o.id, &o.RunOrder, u.ids)
	u.space = space
	if a != nil {
		s.change(contact.WithinProgress, func(st *node.RankStatus) { st.Ports = a.Ports() })
	}
	return a, err
}

func (r *Rank) leaveNetwork() error {
	r.user.close()
	r.net.Close()
	r.net = nil
	return nil
}

// startContainer makes the container's directory and starts its shim there. The shim
// takes over what the rank holds of the network.
func (r *Rank) startContainer(ctx context.Context) error {
	has, _ := r.order.Spec.Portions(len(r.order.Allocation.GPUs))
	own := r.having(has)
	spec, err := own.buildSpec()
	if err == nil && r.order.Spec.Launches() {
		err = r.addLaunch(spec.Process)
	}
	if err != nil {
		return err
	}
	if err := r.inputs.There(); err != nil {
		return err
	}
	before, beside, err := r.parts()
	if err != nil {
		return err
	}
	files, err := redirect.Open(ctx, r.node.Storage, r.tenant, r.envInput())
	if err != nil {
		return err
	}
	defer redirect.Close(files) // from its start on the shim has them
	cfg := r.shimConfig(files, r.keep())
	cfg.Network, cfg.FilterHost, cfg.Runtime = r.net.Shim(), r.net == nil, r.runtime()
	cfg.Own, cfg.Files, cfg.MakeDirs = slices.Concat(r.inputs.Own, r.secrets.own()), r.written, r.order.Spec.OwnDirs()
	cfg.Below, cfg.Before, cfg.Beside = r.binds.below, before, beside
	cfg.FailTogether, cfg.Ending, cfg.Waits = r.order.failTogether(), r.order.ending(), r.ahead
	if err := oci.Prepare(r.order.containerDir(), spec, cfg); err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	handover := handed.Handover{User: r.user.space, Stdio: files, Env: r.state.secretEnv()}
	r.net.Handover(&handover)
	if cfg.Keep != nil {
		r.container, err = r.shelter.start(r, handover)
	} else {
		r.container, err = r.node.Shims.Start(r.order.containerDir(), handover)
	}
	if err != nil {
		return err
	}
	r.state.setContainer(r.container)
	return r.leaveNetwork() // from here on the shim holds it
}
