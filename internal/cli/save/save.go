// Package save is gqueue save: what a running job has written over its image
// becomes a layer of a new image, in a registry that the user names. The registry
// is spoken to from here, with the user's own logins: neither the controller nor a
// node learns them, or connects to where the user says.
package save

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/stream"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/human"
	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/oci/ref"
)

// Save is gqueue save and its flags.
type Save struct {
	ID       string `arg:"" name:"id" help:"Number, UUID or the beginning of a UUID of a job that runs."`
	Image    string `arg:"" name:"image" help:"Where to: REGISTRY/NAME:TAG. The login is that of docker login or podman login."`
	Rank     int    `help:"Rank of a job on several nodes, from 0."`
	Insecure bool   `help:"Speak HTTP with registries that have no TLS."`
}

// Run saves a job's container.
func (o *Save) Run(ctx context.Context, a *cli.App) error {
	to, err := o.target()
	if err != nil {
		return err
	}
	if o.Rank < 0 {
		return exit.Usagef("--rank %d: ranks count from 0", o.Rank)
	}
	d, err := a.Client.Job(ctx, o.ID, client.JobOptions{})
	if err != nil {
		return err
	}
	from, err := o.base(d)
	if err != nil {
		return err
	}
	logins := remote.WithAuthFromKeychain(authn.DefaultKeychain)
	if err := remote.CheckPushPermission(to, authn.DefaultKeychain, remote.DefaultTransport); err != nil {
		return fmt.Errorf("push to %s: %w; nothing was saved, and the job was not touched", to.Context(), err)
	}
	st, err := a.Client.Enter(ctx, api.StreamSave, d.ID, o.Rank)
	if err != nil {
		return err
	}
	defer st.Close()
	platform, err := begin(ctx, st)
	if err != nil {
		return err
	}
	base, err := remote.Image(from, logins, remote.WithPlatform(*platform), remote.WithContext(ctx))
	if err != nil {
		return fmt.Errorf("look at the job's image: %w; it has to be where it was, and your login has to reach it", err)
	}
	in := &layer{ctx: ctx, st: st}
	img, err := over(base, in, "gqueue save "+d.ID)
	if err != nil {
		return err
	}
	if err := remote.Write(to, img, logins, remote.WithContext(ctx)); err != nil {
		if in.err != nil {
			err = in.err // why the layer is not whole
		}
		return fmt.Errorf("save job %s: %w", d.ID, err)
	}
	digest, err := img.Digest()
	if err != nil {
		return err
	}
	a.Say("saved what job %s has written, %s, over its image", d.ID, human.Size(nil, in.n))
	_, err = fmt.Fprintf(a.Out, "%s@%s\n", to, digest)
	return err
}

// target is where the image goes.
func (o *Save) target() (name.Reference, error) {
	r, login, err := ref.Parse(o.Image)
	switch {
	case err != nil:
		return nil, exit.Usagef("IMAGE: %v", err)
	case login != nil:
		return nil, exit.Usagef("IMAGE: a password on the command line can be read by others: log in with docker login or podman login")
	case r.Local():
		return nil, exit.Usagef("IMAGE %q is no registry's: want REGISTRY/NAME:TAG", o.Image)
	case r.Digest != "":
		return nil, exit.Usagef("IMAGE %q has a digest, which is known only when it is saved: want REGISTRY/NAME:TAG", o.Image)
	}
	return o.reference(r.String())
}

// base is the image that the job runs, by its digest.
func (o *Save) base(d *api.JobDetail) (name.Reference, error) {
	if d.Private {
		return nil, fmt.Errorf("job %s is of another project: only who may see it can save it", d.ID)
	}
	if d.State != job.Running || len(d.Attempts) == 0 || d.Spec == nil {
		return nil, fmt.Errorf("job %s is %s: it can be saved only while it runs", d.ID, d.State)
	}
	ranks := d.Attempts[len(d.Attempts)-1].Ranks
	if o.Rank >= len(ranks) {
		return nil, fmt.Errorf("job %s has ranks 0 to %d", d.ID, len(ranks)-1)
	}
	r, _, err := ref.Parse(d.Spec.Request.Docker.Image)
	if err != nil {
		return nil, err
	}
	if r.Local() || ranks[o.Rank].Image == "" {
		return nil, fmt.Errorf("job %s runs the image %s, which is in no registry: push that first, and run a job of it", d.ID, r.Familiar())
	}
	return o.reference(r.WithDigest(ranks[o.Rank].Image).String())
}

func (o *Save) reference(text string) (name.Reference, error) {
	var opts []name.Option
	if o.Insecure {
		opts = append(opts, name.Insecure)
	}
	return name.ParseReference(text, opts...)
}

// begin asks for the layer and waits until the job stands still.
func begin(ctx context.Context, st *client.Stream) (*v1.Platform, error) {
	if err := st.Send(ctx, api.JSONFrame(api.FrameStart, api.SaveStart{})); err != nil {
		return nil, errBroken
	}
	f, err := st.Receive(ctx)
	switch {
	case err != nil:
		return nil, errBroken
	case f.Type == api.FrameError:
		return nil, f.Failure()
	case f.Type != api.FrameStart:
		return nil, errors.New("the node answers with something else than a layer; it may be older than gqueue")
	}
	begun, err := f.SaveBegun()
	if err != nil {
		return nil, err
	}
	return v1.ParsePlatform(begun.Platform)
}

// over is an image with one more layer.
func over(base v1.Image, in io.ReadCloser, by string) (v1.Image, error) {
	kind, err := base.MediaType()
	if err != nil {
		return nil, err
	}
	media := types.DockerLayer
	if kind == types.OCIManifestSchema1 {
		media = types.OCILayer
	}
	return mutate.Append(base, mutate.Addendum{
		Layer:   stream.NewLayer(in, stream.WithMediaType(media)),
		History: v1.History{CreatedBy: by},
	})
}

var errBroken = errors.New("the stream broke off: the controller or the node was restarted or cannot be reached; nothing was saved, and the job goes on")

// layer is the layer as it comes from the node.
type layer struct {
	ctx  context.Context
	st   *client.Stream
	rest []byte
	n    int64
	err  error // why it is not whole
}

func (l *layer) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		f, err := l.st.Receive(l.ctx)
		switch {
		case err != nil:
			l.err = errBroken
			return 0, l.err
		case f.Type == api.FrameOutput:
			l.rest = f.Data
		case f.Type == api.FrameExit:
			return 0, io.EOF
		case f.Type == api.FrameError:
			l.err = f.Failure()
			return 0, l.err
		}
	}
	n := copy(p, l.rest)
	l.rest, l.n = l.rest[n:], l.n+int64(n)
	return n, nil
}

func (l *layer) Close() error { return l.st.Close() }
