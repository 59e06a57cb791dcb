package rank

import (
	"context"
	"errors"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/contact"
	"gbatch/internal/noded/images"
	"gbatch/internal/noded/reason"
	"gbatch/oci/image"
	"gbatch/oci/image/share"
	"gbatch/oci/ref"
)

// pulled is the rank's image.
type pulled struct {
	login        *api.Credential // until the image is here
	peers        []share.Peer    // likewise
	since        time.Time       // what a registry was asked for since then will do; zero: nothing
	*image.Image                 // nil: an earlier daemon started the rank
}

// pull brings the image here, and tells how far it is.
func (p *pulled) pull(ctx context.Context, store *images.Holds, o *order, s *state) error {
	docker := &o.Spec.Request.Docker
	name, creds, err := ref.Parse(docker.Image)
	if err != nil {
		return reason.Because(job.BadSpec, err)
	}
	// Documents hold no password; should one ever come, it goes no further.
	docker.Image = name.Familiar()
	if o.Digest != "" {
		name = name.WithDigest(o.Digest)
	}
	began := time.Now()
	s.setPhase(node.PhasePulling)
	req := image.PullRequest{Ref: name, Progress: func(pr image.Progress) { s.pullProgress(pr, o.Ranks > 1 || o.Array != nil) }, Credentials: creds, Peers: p.peers, AskedSince: p.since}
	if p.login != nil {
		req.Credentials = &ref.Credentials{Username: p.login.Username, Password: p.login.Password}
	}
	img, err := store.Pull(ctx, o.id, req)
	if err != nil {
		return err
	}
	// From here on nothing needs the password.
	p.login, p.peers = nil, nil
	p.Image = img
	s.change(contact.WithinProgress, func(st *node.RankStatus) {
		st.Phase, st.Progress, st.Image = s.told(node.PhaseStarting), "", img.Digest
		st.PullMS = max(1, time.Since(began).Milliseconds())
	})
	return nil
}

// pullBeside brings the image of what runs before the job here. The job's login is used
// in the registry that it is for.
func (r *Rank) pullBeside(ctx context.Context, of string, login *api.Credential) (*image.Image, error) {
	name, _, err := ref.Parse(of)
	own, _, ownErr := ref.Parse(r.order.Spec.Request.Docker.Image)
	if err != nil || ownErr != nil {
		return nil, reason.Because(job.BadSpec, errors.Join(err, ownErr))
	}
	req := image.PullRequest{Ref: name, Progress: func(pr image.Progress) { pr.Digest = ""; r.state.pullProgress(pr, false) }}
	if login != nil && own.Registry == name.Registry {
		req.Credentials = &ref.Credentials{Username: login.Username, Password: login.Password}
	}
	img, err := r.node.Images.Pull(ctx, r.order.id, req)
	r.state.setProgress("")
	return img, err
}

// pullProgress tells how far a pull is; which image it is at once where a gang's other ranks or other tasks
// wait for that, and otherwise with the rank's next word.
func (s *state) pullProgress(p image.Progress, awaited bool) {
	within := contact.WithinPull
	s.mu.Lock()
	if p.Digest != "" && s.status.Image == "" {
		s.status.Image = p.Digest
		if awaited {
			within = contact.AtOnce
		}
	}
	s.mu.Unlock()
	s.change(within, func(st *node.RankStatus) { st.Progress = images.Progress(p) })
}
