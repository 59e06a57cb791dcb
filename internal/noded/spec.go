package noded

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/cgroups"
	"gbatch/internal/job"
	"gbatch/internal/noded/reason"
	"gbatch/oci"
	"gbatch/oci/netns"
)

// buildSpec makes the container's spec out of order, image and grant.
func (r *rank) buildSpec() (*specs.Spec, error) {
	docker := &r.order.Spec.Request.Docker
	args, _, err := docker.Command.Args()
	if err != nil {
		return nil, reason.Because(job.BadSpec, err)
	}
	req := oci.SpecRequest{
		Image: oci.ImageConfig{
			Env:        r.img.Config.Env,
			Entrypoint: r.img.Config.Entrypoint,
			Cmd:        r.img.Config.Cmd,
			WorkDir:    r.img.Config.WorkingDir,
			User:       r.img.Config.User,
		},
		Entrypoint: r.order.Spec.Entrypoint(),
		Command:    args,
		Privileged: r.order.Spec.Privileged(),
		Env:        job.Environment(r.envInput()),
		SecretEnv:  r.secretEnv(),
		WorkDir:    docker.WorkingDir,
		User:       docker.User,
		Groups:     r.groups(),
		IDs:        r.ids,
		Hostname:   r.hostname(),
		Terminal:   r.order.Spec.HasTerminal(),
		Mounts:     r.allMounts(),
		ShmBytes:   r.shmBytes(),
		Network:    oci.Network{Host: r.net == nil},
		CgroupPath: r.a.host.CgroupPath(r.id),
		Limits: cgroups.Limits{
			CPUs:        r.cores.CPUs,
			Mems:        r.cores.Mems,
			MemoryBytes: r.order.Allocation.MemBytes,
			Pids:        int64(r.a.cfg.PidsMax),
		},
		Rlimits: rlimits(len(r.order.Allocation.GPUs) > 0),
	}
	for _, s := range docker.Storage {
		if s.HostPath == job.TmpfsHostPath {
			req.Tmpfs = append(req.Tmpfs, oci.Tmpfs{Target: s.ContainerPath, Bytes: int64(s.SizeGB) << 30})
		}
	}
	spec, err := oci.BuildSpec(req)
	if err != nil {
		return nil, reason.Because(job.BadSpec, err)
	}
	if err := r.runAsUser(spec); err != nil {
		return nil, err
	}
	return spec, r.a.devices.Edit(spec, uuids(r.order.Allocation))
}

func (r *rank) envInput() job.EnvInput {
	ids := uuids(r.order.Allocation)
	var nodes, addresses []string
	var slots []int
	for _, p := range r.order.Peers {
		nodes, addresses, slots = append(nodes, p.Node), append(addresses, p.Address), append(slots, p.GPUs)
	}
	return job.EnvInput{
		Nodes: nodes, Addresses: addresses, Slots: slots, MasterPort: r.order.MasterPort,
		Spec: &r.order.Spec, ID: r.id,
		UUID: r.order.UUID, User: r.order.User, Project: r.order.Project, ProjectGID: r.projectGID(),
		RestartCount: r.order.Restarts + int(r.id.Attempt) - 1, Initial: r.order.Initial,
		Array:       r.order.Array,
		ClusterID:   r.a.cfg.ClusterID,
		Node:        r.a.cfg.Name,
		DNSName:     r.a.host.DNS,
		InstanceID:  r.a.instance,
		PID:         os.Getpid(),
		WorkerID:    "0",
		Version:     r.a.version,
		Cores:       r.cores.List(r.order.Allocation.CPUs),
		GPUs:        r.a.devices.Indexes(ids),
		GPUUUIDs:    ids,
		MemoryBytes: r.order.Allocation.MemBytes,
		Ports:       r.statusPorts(),
	}
}

func (r *rank) shmBytes() int64 {
	if g := r.order.Spec.Gbatch; g != nil && g.ShmSizeMB > 0 {
		return int64(g.ShmSizeMB) << 20
	}
	return int64(r.a.cfg.ShmSize)
}

// rlimits lift what GPU libraries run into: memory that devices write to must
// be locked. The shim lowers this to what the host allows.
func rlimits(gpus bool) []specs.POSIXRlimit {
	if !gpus {
		return nil
	}
	return []specs.POSIXRlimit{{Type: "RLIMIT_MEMLOCK", Hard: math.MaxUint64, Soft: math.MaxUint64}}
}

// hostFiles are the files by which programs find names and hosts. Each rank
// gets its own copies, so that a job may change its own.
var hostFiles = []string{"hosts", "resolv.conf"}

// hostfile lies beside them, for ranks that have one.
const hostfile = "hostfile"

// writeFiles copies them into the rank's directory.
func (r *rank) writeFiles(context.Context) error {
	dir := filepath.Join(r.dir, "etc")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for _, name := range hostFiles {
		text, err := os.ReadFile("/etc/" + name)
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		switch {
		case name == "hosts" && r.net != nil:
			text = netns.Hosts(text, r.net.at.Addr, r.hostname())
		case name == "hosts":
			text = withHost(text, r.a.host.Name)
		case r.net != nil:
			text, _ = r.a.network.own.ResolvConf()
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	if r.order.Spec.HasHostfile() {
		if err := os.WriteFile(filepath.Join(dir, hostfile), []byte(job.Hostfile(r.envInput())), 0o644); err != nil {
			return err
		}
	}
	return r.giveToRoot(dir)
}

// withHost makes sure that the host's own name can be resolved: launchers of
// parallel programs look it up.
func withHost(hosts []byte, name string) []byte {
	for line := range strings.Lines(string(hosts)) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		for _, f := range fields[min(1, len(fields)):] {
			if strings.EqualFold(f, name) {
				return hosts
			}
		}
	}
	text := strings.TrimRight(string(hosts), "\n")
	if !strings.Contains(text, "localhost") {
		text += "\n127.0.0.1\tlocalhost"
	}
	return []byte(strings.TrimLeft(text+"\n127.0.1.1\t"+name+"\n", "\n"))
}

func (r *rank) allMounts() []oci.Mount {
	list := slices.Concat(r.mounts, r.inputs)
	taken := map[string]bool{}
	for _, m := range list {
		taken[m.Target] = true
	}
	for _, name := range hostFiles {
		if target := "/etc/" + name; !taken[target] {
			list = append(list, oci.Mount{Source: filepath.Join(r.dir, "etc", name), Target: target})
		}
	}
	if r.order.Spec.HasHostfile() {
		list = append(list, oci.Mount{Source: filepath.Join(r.dir, "etc", hostfile), Target: job.HostfilePath})
	}
	return list
}
