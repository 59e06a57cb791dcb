package rank

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/contact"
	"gbatch/internal/noded/inside"
	"gbatch/internal/noded/redirect"
	"gbatch/oci"
	"gbatch/oci/handed"
	"gbatch/oci/held"
	"gbatch/oci/logs"
	"gbatch/oci/stdio"
)

// guest is a rank whose program runs in the container of an earlier one. Its start is what
// belongs to it alone: its cores, its record, its directory with log and result. What the
// container has is its owner's, which is removed when the container has ended. No other
// than the node knows of it; a rank is a guest, or not, as it comes.
type guest struct{ *Rank }

// errNoHome says that there is none after all.
var errNoHome = errors.New("no container waits for the task")

// prepare starts the rank in a container that is there; false: there is none.
func (g guest) prepare(ctx context.Context) (done bool, err error) {
	key := g.homeKey()
	if key == "" || !g.node.Homes.has(key) {
		return false, nil
	}
	err = follow(ctx, g.node, g.guestSteps())
	if !errors.Is(err, errNoHome) && !errors.Is(err, oci.ErrGone) {
		return true, err
	}
	// It has ended meanwhile, and nothing of this rank ran: it gets one of its own.
	g.shelter.leave()
	g.undo()
	g.forgetGuest()
	g.order.at, g.order.guest, g.secrets = g.order.id, false, secretFiles{dir: g.order.secretsDir()}
	return false, nil
}

// guestSteps are those of steps that a guest needs.
func (g guest) guestSteps() []step {
	var list []step
	for _, s := range g.steps() {
		switch s.name {
		case "user", "room", "fit", "record", "prolog":
			list = append(list, s)
		case "cores":
			list = append(list, s, step{"home", func(context.Context) error { return g.lodge() }, nothing})
		case "container":
			list = append(list, step{"guest", g.begin, nothing})
		}
	}
	return list
}

// lodge takes a container that waits.
func (g guest) lodge() error {
	h := g.node.Homes.take(g.homeKey(), g.order.Digest, g.cores.CPUs)
	if h == nil {
		return errNoHome
	}
	owner := h.owner
	g.shelter.home, g.shelter.homes, g.order.at = h, g.node.Homes, owner.order.id
	g.order.guest = true
	g.image.login, g.image.Image = nil, owner.image.Image
	g.state.change(contact.WithinProgress, func(st *node.RankStatus) { st.Image = g.image.Digest })
	if _, err := os.Lstat(g.order.dir); err == nil { // of an earlier try
		if err := RemoveDir(g.order.dir); err != nil {
			return err
		}
	}
	g.binds.shown, g.binds.mounts = h.shown, h.mounts
	if !g.order.wantsSecrets() {
		return nil
	}
	if g.state.secretsNow() == nil {
		return errors.New("the controller sent no secrets for a job that has some")
	}
	g.secrets = secretFiles{dir: owner.secrets.dir, mounted: true, written: h.secrets}
	g.secrets.renew(&g.order, g.state)
	return nil
}

// begin has the container's shim run the rank's program there.
func (g guest) begin(ctx context.Context) error {
	h := g.shelter.home
	g.net = h.net
	spec, err := g.buildSpec()
	g.net = nil
	if err != nil {
		return err
	}
	files, err := redirect.Open(ctx, g.node.Storage, g.tenant, g.envInput())
	if err != nil {
		return err
	}
	defer redirect.Close(files) // from its start on the shim has them
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if g.container, err = h.kept.Start(g.order.lodging(), spec, g.shimConfig(files, nil), handed.Handover{Stdio: files, Env: g.state.secretEnv()}); err != nil {
		return err
	}
	h.cores = g.cores.CPUs
	g.state.setContainer(g.container)
	if len(g.order.Allocation.GPUs) > 0 {
		g.measure(false) // where the counters of energy stand: that it runs may be told late
	}
	return nil
}

// clean waits for the shim of an earlier version to be done with the rank: one that was killed leaves
// processes for a moment that have its lock. What the rank has of its own is its log.
func (g guest) clean() error {
	if g.order.guest {
		return nil
	}
	lock, err := held.TakeWithin(g.order.containerDir(), held.Passing)
	if errors.Is(err, fs.ErrNotExist) { // it never began
		return nil
	}
	if err != nil {
		return err
	}
	return lock.Close()
}

// start begins a rank's container as one in which others may run after it.
func (x *shelter) start(r *Rank, h handed.Handover) (*oci.Container, error) {
	c, kept, err := r.node.Shims.StartKept(r.order.containerDir(), h)
	if err != nil {
		return nil, err
	}
	x.home = &home{kept: kept, key: r.homeKey(), owner: r, net: r.net, shown: r.binds.shown, mounts: r.binds.mounts, cores: r.cores.CPUs, secrets: r.secrets.written}
	x.owned, x.homes = true, r.node.Homes
	r.state.setSheltering(true)
	x.homes.add(x.home)
	return c, nil
}

// keep is how the rank's container is to be kept; nil: it is not.
func (r *recipe) keep() *oci.Keep {
	if r.homeKey() == "" {
		return nil
	}
	return &oci.Keep{Program: filepath.Join(r.node.Programs, inside.Rank)}
}

// init is the first process of a batch script's container, which begins the script; "": the
// program is the first. Ranks that wait have one already, and a terminal is the first process's.
func (r *recipe) init() string {
	if s := &r.order.Spec; !s.Launches() || s.Waits(r.order.id.Rank) || s.HasTerminal() || r.runtime() != nil {
		return ""
	}
	return filepath.Join(r.node.Programs, inside.Rank)
}

// endsOne says that the memory limit ends one process and not the container: a batch script
// sees its step fail, or its program, as with Slurm.
func (r *recipe) endsOne() bool {
	return r.order.Spec.Launches() && r.runtime() == nil
}

// shimConfig is what every shim is told of its container.
func (r *recipe) shimConfig(files stdio.Files, keep *oci.Keep) oci.ShimConfig {
	return oci.ShimConfig{
		ID:     r.node.Config.Name + "." + r.order.at.String(), // unique on the machine
		Layers: r.image.Layers, Scratch: r.node.Disk.Scratch(r.order.at), Once: !r.order.Spec.LeavesFiles(),
		Log: logs.Limits{MaxBytes: int64(r.node.Config.Logs.Quota)},

		Stdio: files.Names(),
		Keep:  keep, Init: r.init(), OOMOne: r.endsOne(),

		SignalFirst: r.order.signalFirst(),

		LeaseFile: r.order.lease(r.node.LeaseFile),
		Limit:     r.order.shimLimit(), LimitFile: r.order.limitFile(),
	}
}

// Shelter says that a rank of an earlier daemon's runs in what was this rank's container.
func (r *Rank) Shelter(guest *Rank) {
	r.shelter.guests = guest.container.Done()
	r.state.setSheltering(true)
}

// Shelters says that others run, or may, in what was the rank's container.
func (r *Rank) Shelters() bool {
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	return r.state.sheltering
}

// Place is the rank in whose container this one runs, and by whose name the host has it:
// usually its own.
func (r *Rank) Place() job.RankID { return r.order.at }

func (s *state) setSheltering(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sheltering = on
}
