package rank

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/cgroups"
	"gbatch/internal/job"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/cores"
	"gbatch/internal/noded/data"
	"gbatch/internal/noded/devices"
	"gbatch/internal/noded/inside"
	"gbatch/internal/noded/network"
	"gbatch/internal/noded/reason"
	"gbatch/oci"
	"gbatch/oci/draft"
	"gbatch/oci/runtimes"
)

// recipe is what the rank's container is made of: the order, and what the steps of
// the start have found and taken for it. It is only for the rank's own goroutine;
// but order.Allocation is changed with state.mu held, as others read it.
type recipe struct {
	node  *Node
	state *state

	order    order
	user     user
	image    pulled
	cores    cores.Grant
	binds    binds
	programs []program // the job's but its own; unknown where an earlier daemon began it
	inputs   data.Inputs
	secrets  secretFiles
	key      *string             // see homeKey; nil: not known yet
	net      *network.Attachment // until the shim has it; nil: the node's, or already there
	link     string              // see network.Attachment.Link; only of a rank that an earlier daemon began
}

// buildSpec makes the container's spec out of order, image and grant.
func (r *recipe) buildSpec() (*specs.Spec, error) {
	docker := &r.order.Spec.Request.Docker
	if r.order.Spec.Launches() && r.node.Programs == "" {
		return nil, errors.New("this gnoded was built without the program that starts tasks in containers: build it with make")
	}
	if r.order.Spec.Launches() {
		if err := inside.Keep(r.node.Programs); err != nil {
			return nil, fmt.Errorf("lay out the programs for containers anew: %w", err)
		}
	}
	args, _, err := docker.Command.Args()
	if err != nil {
		return nil, reason.Because(job.BadSpec, err)
	}
	env := job.Environment(r.envInput())
	req := draft.Request{
		Image: draft.Image{
			Env:        r.image.Config.Env,
			Entrypoint: r.image.Config.Entrypoint,
			Cmd:        r.image.Config.Cmd,
			WorkDir:    r.image.Config.WorkingDir,
			User:       r.image.Config.User,
		},
		Entrypoint: job.ExpandWords(&r.order.Spec, r.order.Spec.Entrypoint(), env),
		Command:    job.ExpandWords(&r.order.Spec, args, env),
		Privileged: r.order.Spec.Privileged(),
		AppArmor:   r.node.AppArmor,

		Capabilities: capabilities(r.order.Spec.Capabilities()),
		Env:          env,
		SecretEnv:    r.state.secretEnv(),
		WorkDir:      docker.WorkingDir,
		User:         docker.User,
		Groups:       r.user.groupsBeside(docker.GroupAdd),
		IDs:          r.user.ids,
		Hostname:     r.hostname(),
		Terminal:     r.order.Spec.HasTerminal(),
		Mounts:       r.allMounts(),
		ShmBytes:     r.order.shmBytes(r.node.Config.ShmSize),
		Network:      draft.Network{Host: r.net == nil},
		CgroupPath:   r.node.Host.CgroupPath(r.order.at),
		Limits: cgroups.Limits{
			CPUs:        r.cores.CPUs,
			Mems:        r.cores.Mems,
			MemoryBytes: r.order.Allocation.MemBytes,
			Pids:        int64(r.node.Config.PidsMax),
			IO:          r.node.Disk.Throttles(),
		},
		Rlimits: devices.Rlimits(len(r.order.Allocation.GPUs) > 0),
	}
	if r.order.Spec.Waits(r.order.id.Rank) {
		req.Entrypoint, req.Command, req.Terminal = []string{job.LaunchDir + "/" + inside.Rank}, nil, false
	}
	for _, s := range docker.Storage {
		if s.HostPath == job.TmpfsHostPath && !r.binds.shown.Nested(s.ContainerPath) {
			req.Tmpfs = append(req.Tmpfs, draft.Tmpfs{Target: s.ContainerPath, Bytes: s.Bytes(r.order.Allocation.MemBytes)})
		}
	}
	spec, err := draft.Build(req)
	if err != nil {
		return nil, reason.Because(job.BadSpec, err)
	}
	if r.endsOne() {
		spec.Process.OOMScoreAdj = new(0) // tasks of steps have 1000, which is more than all of its memory is worth
	}
	if err := r.runAsUser(spec); err != nil {
		return nil, err
	}
	return spec, r.node.Devices.Edit(spec, r.order.gpus())
}

// runtime is the program that runs the container; nil: the usual way.
func (r *recipe) runtime() *runtimes.Runtime {
	if found, ok := r.node.Runtimes[r.order.Spec.Runtime()]; ok {
		return &found
	}
	return nil
}

func capabilities(list []job.Capability) (names []string) {
	for _, c := range list {
		names = append(names, "CAP_"+string(c))
	}
	return names
}

func (r *recipe) envInput() job.EnvInput {
	ids := r.order.gpus()
	var nodes, addresses []string
	var slots, cpus []int
	for _, p := range r.order.Peers {
		at := p.Address
		if inside, err := netip.ParsePrefix(p.Inside); err == nil {
			at = inside.Addr().String()
		}
		nodes, addresses, slots = append(nodes, p.Node), append(addresses, at), append(slots, p.GPUs)
		if p.CPUs > 0 { // an older controller does not say
			cpus = append(cpus, p.CPUs)
		}
	}
	return job.EnvInput{
		Nodes: nodes, Addresses: addresses, Slots: slots, CPUs: cpus, MasterPort: r.order.MasterPort,
		Spec: &r.order.Spec, ID: r.order.id,
		UUID: r.order.UUID, User: r.order.User, Project: r.order.Project, ProjectGID: r.user.group(r.order.ProjectGID), UID: int(r.user.UID), GID: int(r.user.GID),
		RestartCount: r.order.Restarts + int(r.order.id.Attempt) - 1, Initial: r.order.Initial,
		Array:       r.order.Array,
		ClusterID:   r.node.Config.ClusterID,
		Partition:   r.order.Partition,
		Node:        r.node.Config.Name,
		DNSName:     r.node.Host.DNS,
		Address:     r.order.address(addresses, r.net, r.node.Host.Address),
		HostAddress: r.node.Host.Address,
		InstanceID:  r.node.Instance,
		PID:         os.Getpid(),
		WorkerID:    "0",
		Version:     r.node.Version,
		Cores:       r.cores.List(r.order.Allocation.CPUs),
		GPUs:        r.node.Devices.Indexes(ids),
		GPUUUIDs:    ids,
		MemoryBytes: r.order.Allocation.MemBytes,
		Ports:       r.state.now().Ports,
	}
}

// address is the rank's own; of a gang's rank it is the one by which the others reach it.
func (o *order) address(gang []string, own *network.Attachment, host string) string {
	if rank := int(o.id.Rank); len(gang) > 1 && rank < len(gang) {
		return gang[rank]
	}
	if a := own.Address(); a.IsValid() {
		return a.String()
	}
	return host
}

func (o *order) shmBytes(usual config.Size) int64 {
	if g := o.Spec.Gbatch; g != nil && g.ShmSizeMB > 0 {
		return int64(g.ShmSizeMB) << 20
	}
	return int64(usual)
}

// ownFiles are files of the job as the container gets them.
func ownFiles(files []job.File) (list []oci.File) {
	for _, f := range files {
		list = append(list, oci.File{Path: f.Path, Text: f.Text, Link: f.Link(), Program: f.Program})
	}
	return list
}

func (r *recipe) allMounts() []draft.Mount {
	list := slices.Concat(r.binds.mounts, r.secrets.mounts(), r.inputs.Mounts)
	return append(list, r.launchMounts(list)...)
}

// secretEnv is the secrets as variables.
func (s *state) secretEnv() []string {
	if v := s.secretsNow(); v != nil {
		return job.SecretEnvironment(v.Values)
	}
	return nil
}

// hostname is the machine's where the rank shares its network, else the name that the job
// gives it, and without one the node's in a gang's: programs look for their own address by it,
// and for themselves in the list of nodes.
func (r *recipe) hostname() string {
	id := r.order.id
	own := r.order.Spec.Hosts(int(id.Rank))
	switch {
	case r.net == nil:
		return r.node.Host.Name
	case len(own) > 0:
		name, _, _ := strings.Cut(own[0], ".")
		return name
	case r.net.Gang(), r.order.Spec.Launches(): // scripts look for themselves in the list of nodes
		return r.node.Config.Name
	case r.homeKey() != "":
		return homeName(r.order.Array.Parent)
	case id.Task > 0:
		return fmt.Sprintf("job-%d-%d", id.Job, id.Task)
	default:
		return fmt.Sprintf("job-%d", id.Job)
	}
}

// hostfile lists the nodes of the rank's attempt; empty: the job has none.
func (r *recipe) hostfile() string {
	if !r.order.Spec.HasHostfile() {
		return ""
	}
	return job.Hostfile(r.envInput())
}
