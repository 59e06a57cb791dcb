package noded

import (
	"context"
	"fmt"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/reason"
	"gbatch/oci"
	"gbatch/oci/image"
	"gbatch/oci/ref"
)

// step is one part of a rank's start. Undo takes back what do did, works
// without it and twice, and so cleans up after a crash anywhere in do.
type step struct {
	name string
	do   func(r *rank, ctx context.Context) error
	undo func(r *rank) error
}

// steps are done in this order and undone in the reverse. What is durable when:
// record comes before container, so that whatever may have run is known.
var steps = []step{
	{"user", (*rank).findUser, nothing},
	{"image", (*rank).pullImage, nothing},    // let go by cleanAll, once nothing is mounted
	{"inputs", (*rank).fetchInputs, nothing}, // gone with cleanAll
	{"slot", (*rank).takeSlot, (*rank).giveSlot},
	{"cores", (*rank).takeCores, (*rank).giveCores},
	{"storage", (*rank).bindStorage, (*rank).unbindStorage},
	{"secrets", (*rank).mountSecrets, nothing},             // goes with the storage
	{"network", (*rank).joinNetwork, (*rank).leaveNetwork}, // the host's part goes with cleanAll
	{"files", (*rank).writeFiles, nothing},
	{"record", (*rank).record, nothing},
	{"gang", (*rank).awaitGang, nothing},
	{"container", (*rank).startContainer, nothing}, // its directory goes with cleanAll
}

// nothing undoes steps that leave only files, which go later: see cleanAll.
func nothing(*rank) error { return nil }

// prepare does all steps up to a started container. A stop breaks it off.
func (r *rank) prepare(ctx context.Context) error {
	for _, s := range steps {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		r.a.reached("before " + s.name)
		began := time.Now()
		if err := s.do(r, ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		r.a.measures.steps.WithLabelValues(s.name).Observe(time.Since(began).Seconds())
	}
	r.a.reached("started")
	return nil
}

// undo takes everything back that others wait for: cores, slot, storage. What
// is slow to remove is left to cleanAll.
func (r *rank) undo() {
	for i := len(steps) - 1; i >= 0; i-- {
		err := steps[i].undo(r)
		r.a.health.leftover(r.id, err)
		if err != nil {
			r.log.Error("undo step", "step", steps[i].name, "error", err)
		}
	}
}

// pullImage brings the image here, and tells how far it is.
func (r *rank) pullImage(ctx context.Context) error {
	docker := r.order.Spec.Request.Docker
	name, creds, err := ref.Parse(docker.Image)
	if err != nil {
		return reason.Because(job.BadSpec, err)
	}
	// Documents hold no password; should one ever come, it goes no further.
	r.order.Spec.Request.Docker.Image = name.Familiar()
	if r.order.Digest != "" {
		name = name.WithDigest(r.order.Digest)
	}
	began := time.Now()
	r.setPhase(node.PhasePulling)
	req := image.PullRequest{Ref: name, Progress: r.pullProgress}
	req.Credentials = creds
	if r.login != nil {
		req.Credentials = &ref.Credentials{Username: r.login.Username, Password: r.login.Password}
	}
	img, err := r.a.images.Pull(ctx, r.id, req)
	if err != nil {
		return err
	}
	// From here on nothing needs the password.
	r.login = nil
	r.img = img
	r.change(newsProgress, func(s *node.RankStatus) {
		s.Phase, s.Progress, s.Image = node.PhaseStarting, "", img.Digest
		s.PullMS = max(1, time.Since(began).Milliseconds())
	})
	return nil
}

func (r *rank) pullProgress(p image.Progress) {
	text := ""
	switch {
	case p.Phase == image.PhaseResolve:
		text = "asking the registry"
	case p.Phase == image.PhaseUnpack:
		text = fmt.Sprintf("unpacking, %d of %d layers", p.LayersDone, p.Layers)
	case p.Total > 0:
		text = fmt.Sprintf("pulling %s of %s", config.FormatBytes(p.Bytes), config.FormatBytes(p.Total))
	}
	within := newsPull
	r.a.mu.Lock()
	if p.Digest != "" && r.status.Image == "" {
		r.status.Image = p.Digest
		within = newsNow // the other ranks of a gang wait for it
	}
	r.a.mu.Unlock()
	r.change(within, func(s *node.RankStatus) { s.Progress = text })
}

// takeSlot waits for one of the places in which containers may be starting:
// more at once than there are cores make each start slower and none faster.
func (r *rank) takeSlot(ctx context.Context) error {
	select {
	case r.a.slots <- struct{}{}:
		r.hasSlot = true
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *rank) giveSlot() error {
	if r.hasSlot {
		r.hasSlot = false
		<-r.a.slots
	}
	return nil
}

func (r *rank) takeCores(context.Context) error {
	g, err := r.a.cores.Take(r.id, r.order.Allocation.CPUs, r.a.devices.Near(uuids(r.order.Allocation)))
	if err != nil {
		return err
	}
	r.cores = g
	r.change(newsProgress, func(s *node.RankStatus) { s.Cores = g.CPUs.String() })
	return nil
}

func (r *rank) giveCores() error {
	r.a.cores.GiveBack(r.id)
	return nil
}

// startContainer makes the container's directory and starts its shim there.
func (r *rank) startContainer(ctx context.Context) error {
	spec, err := r.buildSpec()
	if err != nil {
		return err
	}
	err = oci.Prepare(r.box(), spec, oci.ShimConfig{
		ID:     r.a.containerID(r.id),
		Layers: r.img.Layers,
		Log:    oci.LogLimits{MaxBytes: int64(r.a.cfg.Logs.Quota)},

		Network: r.shimNetwork(),

		LeaseFile: r.a.contact.path,
		Own:       r.own,
		MakeDirs:  r.order.Spec.OwnDirs(),
	})
	if err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if r.shim, err = r.a.shims.Start(r.box(), r.handover()); err != nil {
		return err
	}
	return r.leaveNetwork() // from here on the shim holds it
}

// discard removes the directory of a rank that never ran.
func (r *rank) discard() {
	r.a.images.Drop(r.id)
	if err := r.detachNetwork(); err != nil {
		r.log.Error("remove network of rank that never ran", "error", err)
	}
	if err := removeRankDir(r.dir); err != nil {
		r.log.Error("remove rank that never ran", "error", err)
	}
}

func uuids(a api.Allocation) []string {
	var list []string
	for _, g := range a.GPUs {
		list = append(list, g.UUID)
	}
	return list
}
