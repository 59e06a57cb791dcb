package rank

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"gbatch/internal/job"
	"gbatch/internal/launch"
	"gbatch/internal/noded/images"
	"gbatch/internal/noded/inside"
	"gbatch/internal/noded/launches"
	"gbatch/oci/annex"
	"gbatch/oci/draft"
	"gbatch/oci/image"
	"gbatch/oci/ref"
)

// annexer begins containers of steps in images of their own, beside the rank's program.
type annexer struct {
	rank   *Rank
	images *images.Steps
}

// serveAnnexes serves the socket by which the rank asks for such containers, until stop is
// called.
func serveAnnexes(ctx context.Context, r *Rank) (stop func()) {
	if !r.order.Spec.Launches() || r.node.Login == nil {
		return func() {}
	}
	had, err := images.LoadSteps(r.order.dir)
	var served *launches.Containers
	if err == nil {
		a := &annexer{r, had}
		served, err = launches.OpenContainers(r.order.launchDir(), a.begin, r.log)
	}
	if err != nil {
		r.log.Error("steps of the job can have no images of their own", "error", err)
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { served.Serve(ctx) }) // awaited by stop
	return func() { cancel(); done.Wait() }
}

// begin has the shim begin a container for a step's tasks.
func (a *annexer) begin(ctx context.Context, q launch.Container, commit func() (*os.File, error)) error {
	if q.Name != "" {
		if err := annex.CheckName(q.Name); err != nil {
			return launches.Refused{Text: err.Error()}
		}
	}
	img, err := a.pull(ctx, &q)
	if err != nil {
		return err
	}
	if err := a.images.Pin(q.Image, q.Name, img.Ref); err != nil {
		return err
	}
	if err := inside.Keep(a.rank.node.Programs); err != nil {
		return err
	}
	req := a.request(&q, img)
	if err := req.Check(); err != nil {
		return launches.Refused{Text: err.Error()}
	}
	container := a.rank.Container()
	if container == nil {
		return errors.New("the rank's container does not run yet")
	}
	file, err := commit()
	if err != nil {
		return err
	}
	defer file.Close()
	if err := container.Annex(ctx, req, file); err != nil {
		if ctx.Err() != nil {
			return err
		}
		a.rank.log.Warn("begin a container for a step", "error", err)
		_, text := startReason(err)
		return launches.Refused{Text: text}
	}
	return nil
}

// pull brings a step's image here. The job's login is used in the registry that it is for.
func (a *annexer) pull(ctx context.Context, q *launch.Container) (*image.Image, error) {
	r := a.rank
	own, _, err := ref.Parse(r.order.Spec.Request.Docker.Image)
	if err != nil {
		return nil, launches.Refused{Text: err.Error()}
	}
	own = own.WithDigest(r.state.now().Image)
	name, creds, err := a.images.Find(q.Image, q.Name, own)
	if err != nil {
		return nil, launches.Refused{Text: err.Error()}
	}
	req := image.PullRequest{Ref: name, Credentials: creds}
	login, err := r.node.Login(ctx, r.order.id, r.order.UUID)
	if err != nil {
		return nil, err
	}
	if login != nil && own.Registry == name.Registry {
		req.Credentials = &ref.Credentials{Username: login.Username, Password: login.Password}
	}
	img, err := r.node.Images.Pull(ctx, r.order.id, req)
	if err != nil && ctx.Err() == nil {
		_, text := startReason(err)
		return nil, launches.Refused{Text: text}
	}
	return img, err
}

// request is what the shim is asked for: the program that takes tasks, in the image, with
// what containers of batch scripts have of their node.
func (a *annexer) request(q *launch.Container, img *image.Image) annex.Request {
	n := a.rank.node
	out := annex.Request{
		Name: q.Name, Layers: img.Layers, WorkDir: cmp.Or(img.Config.WorkingDir, "/"), ReadOnly: q.ReadOnly, Without: filepath.Dir(n.Programs),
		Args: []string{job.LaunchDir + "/" + inside.Rank, launch.ModeInside, "PATH"},
	}
	search := strings.TrimPrefix(draft.DefaultPath, "PATH=")
	for _, kv := range img.Config.Env {
		name, value, _ := strings.Cut(kv, "=")
		if name == "PATH" {
			search = value
			continue
		}
		out.Env, out.Args = append(out.Env, kv), append(out.Args, name)
	}
	out.Env = append(out.Env, "PATH="+job.LaunchDir+":"+search)
	out.Mounts = append(out.Mounts, draft.Bind(draft.Mount{Source: n.Programs, Target: job.LaunchDir, ReadOnly: true}))
	hidden := func(at string) bool { // by a mount, which gets no new files
		below := func(top string) bool { return strings.HasPrefix(at, strings.TrimSuffix(path.Clean(top), "/")+"/") }
		return slices.ContainsFunc(q.Mounts, func(m launch.Mount) bool { return below(m.Target) }) ||
			slices.ContainsFunc(a.rank.order.Spec.Request.Docker.Storage, func(s job.Storage) bool { return below(s.ContainerPath) })
	}
	for _, c := range inside.Missing(img.Layers) {
		if at := "/usr/bin/" + c.Name; !hidden(at) {
			out.Mounts = append(out.Mounts, draft.Bind(draft.Mount{Source: filepath.Join(n.Programs, c.File), Target: at, ReadOnly: true}))
		}
	}
	for _, m := range q.Mounts {
		out.Inside = append(out.Inside, annex.Bind{Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly})
	}
	return out
}
