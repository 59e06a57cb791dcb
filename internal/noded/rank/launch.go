package rank

import (
	"cmp"
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/launch"
	"gbatch/internal/noded/inside"
	"gbatch/internal/noded/launches"
	"gbatch/oci/draft"
)

// launchDir is what the container of a batch script has of its node.
func (o *order) launchDir() string { return filepath.Join(o.dir, "launch") }

// addLaunch writes down what programs in the container know of the job, and puts
// srun into its PATH.
func (r *recipe) addLaunch(p *specs.Process) error {
	dir := r.order.launchDir()
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	b, err := json.Marshal(r.launchInfo(p.Env))
	if err != nil {
		return err
	}
	for k, kv := range p.Env {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			p.Env[k] = "PATH=" + job.LaunchDir + ":" + path
		}
	}
	return os.WriteFile(filepath.Join(dir, filepath.Base(launch.InfoFile)), b, 0o644)
}

func (r *recipe) launchInfo(env []string) launch.Info {
	o, spec := &r.order, &r.order.Spec
	want := spec.Gbatch.Launch
	in := r.envInput()
	i := launch.Info{
		Job: uint64(o.id.Job), ID: job.TypedID(in), Name: spec.Name, User: o.User, Rank: int(o.id.Rank),
		Port: o.Port, Secret: o.Secret, Image: spec.Request.Docker.Image, Cluster: cmp.Or(o.Partition, strconv.Itoa(r.node.Config.ClusterID)),
		GPUIDs: in.GPUs, GPUs: cudaNames(env), Commands: o.Commands && r.node.Within != nil,
		Tasks: want.Tasks, PerNode: want.PerNode, CPUsPerTask: want.CPUsPerTask, GPUsPerTask: want.GPUsPerTask,
	}
	for _, s := range spec.Request.Docker.Storage {
		i.Mounts, i.Sources = append(i.Mounts, s.ContainerPath), append(i.Sources, cmp.Or(s.HostPath, s.ContainerPath))
		if s.ReadOnly {
			i.ReadOnly = append(i.ReadOnly, s.ContainerPath)
		}
	}
	for _, p := range o.Peers {
		n := launch.Node{Name: p.Node, Address: p.Address, CPUs: p.CPUs, GPUs: p.GPUs}
		if at, err := netip.ParsePrefix(p.Inside); err == nil {
			n.Address = at.Addr().String()
		}
		i.Nodes = append(i.Nodes, n)
	}
	if len(i.Nodes) == 0 {
		i.Nodes = []launch.Node{{Name: r.node.Config.Name, Address: "127.0.0.1", CPUs: o.Allocation.CPUs, GPUs: len(o.Allocation.GPUs)}}
	}
	return i
}

// launchMounts are srun and what belongs to it: in a directory of its own, and in
// /usr/bin where the image has nothing by the name, as scripts set PATH anew. What the
// job has mounted there gets no new files.
func (r *recipe) launchMounts(others []draft.Mount) (list []draft.Mount) {
	if !r.order.Spec.Launches() {
		return nil
	}
	list = append(list, draft.Mount{Source: r.node.Programs, Target: job.LaunchDir, ReadOnly: true},
		draft.Mount{Source: r.order.launchDir(), Target: launch.Dir, ReadOnly: true})
	for _, c := range inside.Missing(r.image.Layers) {
		target := "/usr/bin/" + c.Name
		if !slices.ContainsFunc(others, func(m draft.Mount) bool { return hides(m, target) }) {
			list = append(list, draft.Mount{Source: filepath.Join(r.node.Programs, c.File), Target: target, ReadOnly: true})
		}
	}
	return list
}

// hides says whether a file of the container lies in a mount, which does not have it.
func hides(m draft.Mount, file string) bool {
	rel, err := filepath.Rel(m.Target, file)
	if err != nil || !filepath.IsLocal(rel) {
		return false
	}
	root, err := os.OpenRoot(m.Source) // what users put there leads nowhere else
	if err != nil {
		return true
	}
	defer root.Close()
	st, err := root.Lstat(rel)
	return err != nil || !st.Mode().IsRegular()
}

// serveLaunches serves the socket of a batch script's first rank until stop is
// called.
func (r *Rank) serveLaunches(ctx context.Context) (stop func()) {
	if !r.order.Spec.Launches() || r.order.id.Rank != 0 || r.node.Launches == nil {
		return func() {}
	}
	s, err := launches.Open(r.order.launchDir(), launches.Counting(r.node.Launches(r.order.id, r.order.UUID), r.order.dir), r.log)
	if err != nil {
		r.log.Error("srun cannot start tasks", "error", err)
		return func() {}
	}
	r.state.setLaunches(s)
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { s.Serve(ctx) }) // awaited by stop
	return func() { cancel(); done.Wait() }
}

// serveCommands serves the socket by which programs in a batch script's containers ask
// the controller, until stop is called.
func serveCommands(r *Rank) (stop func()) {
	if !r.order.Spec.Launches() || !r.order.Commands || r.node.Within == nil {
		return func() {}
	}
	ask, err := r.node.Within(r.order.id, r.order.UUID)
	var served *launches.Commands
	if err == nil {
		served, err = launches.OpenCommands(r.order.launchDir(), ask, r.log)
	}
	if err != nil {
		r.log.Error("the job cannot call sbatch and the like", "error", err)
		return func() {}
	}
	return served.Close
}

// setLaunches notes the socket, and tells it what was ordered before.
func (s *state) setLaunches(socket *launches.Socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.launches = socket
	socket.Cancel(s.cancelSteps)
}

// setCancelSteps takes in which steps shall end. It is called with mu held.
func (s *state) setCancelSteps(o api.Order) {
	s.cancelSteps = o.CancelSteps
	if s.launches != nil {
		s.launches.Cancel(o.CancelSteps)
	}
}

// cudaNames are a container's GPUs as CUDA names them there.
func cudaNames(env []string) []string {
	for _, kv := range env {
		if list, ok := strings.CutPrefix(kv, "CUDA_VISIBLE_DEVICES="); ok && list != "" {
			return strings.Split(list, ",")
		}
	}
	return nil
}
