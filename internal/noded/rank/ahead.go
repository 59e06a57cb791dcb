package rank

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/oci"
	"gbatch/oci/result"
	"gbatch/oci/wire"
)

// A rank that follows another one is made while that runs, up to its waiting program, which begins by a word
// to its shim. It holds nothing meanwhile: it has the processors of the one before when that gives them
// back. What is made for a rank that is taken back goes without a trace.

// startInTurn starts the rank when its turn has come, with what is made of it by then.
func startInTurn(ctx context.Context, r *Rank) error {
	login, peers := r.image.login, r.image.peers
	made := makeAhead(ctx, r)
	err := r.turn.Await(ctx)
	if err == nil {
		err = r.state.takeTurn()
	}
	if made && err == nil {
		if made, err = beginMade(ctx, r); made {
			return nil
		}
	}
	if r.ahead {
		dropMade(r)
		r.image.login, r.image.peers = login, peers
	}
	if err != nil {
		return err
	}
	return r.prepare(ctx)
}

// makeAhead makes the rank before its turn, if it can be.
func makeAhead(ctx context.Context, r *Rank) bool {
	of := r.before
	if r.before = nil; of == nil || !plain(r) || r.turn.AwaitPlace(ctx) != nil { // nobody is held in memory by those after it
		return false
	}
	if r.cores, r.ahead = r.node.Cores.Inherit(r.order.id, of.order.id, r.order.Allocation.CPUs); !r.ahead {
		return false
	}
	r.turn.Placed()
	if err := follow(ctx, r.node, stepsAhead(r)); err != nil {
		r.log.Debug("the rank is not made before its turn", "error", err)
		return false
	}
	r.node.Reached("made")
	return true
}

// plain says whether nothing of the rank's start is for its own time alone: GPUs and ports are another one's until
// then, files of its output would be emptied, and what users and the site want done before it came too early.
func plain(r *Rank) bool {
	o, g := &r.order, r.order.Spec.Gbatch
	output, errs, input := job.StdioFiles(r.envInput())
	return o.Ranks < 2 && len(o.Allocation.GPUs) == 0 && len(o.Spec.Request.Docker.PortMappings) == 0 && len(o.Spec.Programs()) == 0 &&
		(g == nil || len(g.Inputs) == 0) && !o.wantsSecrets() && !output.Reached() && !errs.Reached() && !input.Reached() &&
		r.keep() == nil && r.runtime() == nil && len(r.node.Hooks.Prolog) == 0
}

// stepsAhead are those of steps that are done before the turn.
func stepsAhead(r *Rank) (list []step) {
	for _, s := range r.steps() {
		switch s.name {
		case "user", "image", "disk", "slot", "storage", "network", "files", "record", "container":
			list = append(list, s)
		}
	}
	return append(list, step{"made", func(ctx context.Context) error { return errors.Join(awaitMade(ctx, r), r.slot.giveBack()) }, nothing})
}

// awaitMade waits until all is there but the program.
func awaitMade(ctx context.Context, r *Rank) error {
	for {
		phase, changed := r.container.Phase()
		if phase == wire.PhaseMade {
			return nil
		}
		select {
		case <-changed:
		case <-r.container.Done():
			return errors.New("the container ended before its program began")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// beginMade begins the program of a rank whose turn has come. False without an error: nothing of it ran,
// nor will.
func beginMade(ctx context.Context, r *Rank) (begun bool, err error) {
	made := r.cores.CPUs
	r.state.setPhase(node.PhaseStarting)
	for _, s := range r.steps() {
		if s.name == "room" || s.name == "fit" || s.name == "cores" {
			err = errors.Join(err, s.do(ctx))
		}
	}
	if err = errors.Join(err, context.Cause(ctx)); err != nil || r.cores.CPUs.String() != made.String() {
		return false, err
	}
	// Nothing breaks this off: whether the program has begun must be known.
	err = r.container.Begin(context.WithoutCancel(ctx))
	if errors.Is(err, oci.ErrGone) && !result.MayHaveBegun(r.order.containerDir()) {
		return false, nil
	}
	return true, nil // how it went on is seen by the container's end
}

// passEarly lets the next rank begin when the program's end is recorded, unless GPUs or an epilog come after: nothing that ran lives.
func passEarly(r *Rank) {
	if o := &r.order; r.turn.Followed() && len(o.Allocation.GPUs) == 0 && o.Ranks < 2 && r.keep() == nil && !o.guest && r.runtime() == nil && len(r.node.Hooks.Prolog)+len(r.node.Hooks.Epilog) == 0 {
		r.node.Cores.GiveBack(o.id)
		r.turn.Pass()
	}
}

// dropMade takes back all that was made of a rank before its turn.
func dropMade(r *Rank) {
	r.ahead = false
	if r.container != nil {
		ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
		err := r.container.Stop(ctx, unix.SIGKILL, 0)
		cancel()
		r.node.Health.Leftover(r.order.id, err)
		r.container = nil
		r.state.setContainer(nil)
	}
	r.undo()
	r.discard()
}
