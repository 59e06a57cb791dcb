// Package spawn is a runtime spec's process as libcontainer takes it, and the resource
// limits of this one.
package spawn

import (
	"fmt"
	"os"
	"strings"

	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"gbatch/cgroups"
)

// Of turns the spec's process into libcontainer's. Upstream has the
// same only inside its command.
func Of(p *specs.Process) (*libcontainer.Process, error) {
	out := &libcontainer.Process{
		Args: p.Args, Env: p.Env, Cwd: p.Cwd,
		UID: int(p.User.UID), GID: int(p.User.GID),
		NoNewPrivileges: &p.NoNewPrivileges,
		AppArmorProfile: p.ApparmorProfile,
		Label:           p.SelinuxLabel,
	}
	for _, g := range p.User.AdditionalGids {
		out.AdditionalGroups = append(out.AdditionalGroups, int(g))
	}
	if c := p.Capabilities; c != nil {
		out.Capabilities = &configs.Capabilities{
			Bounding: c.Bounding, Effective: c.Effective, Inheritable: c.Inheritable,
			Permitted: c.Permitted, Ambient: c.Ambient,
		}
	}
	for _, r := range p.Rlimits {
		kind, ok := rlimits[r.Type]
		if !ok {
			return nil, fmt.Errorf("unknown resource limit %q", r.Type)
		}
		out.Rlimits = append(out.Rlimits, configs.Rlimit{Type: kind, Hard: r.Hard, Soft: r.Soft})
	}
	return out, nil
}

var rlimits = map[string]int{
	"RLIMIT_AS": unix.RLIMIT_AS, "RLIMIT_CORE": unix.RLIMIT_CORE, "RLIMIT_CPU": unix.RLIMIT_CPU,
	"RLIMIT_DATA": unix.RLIMIT_DATA, "RLIMIT_FSIZE": unix.RLIMIT_FSIZE, "RLIMIT_MEMLOCK": unix.RLIMIT_MEMLOCK,
	"RLIMIT_MSGQUEUE": unix.RLIMIT_MSGQUEUE, "RLIMIT_NICE": unix.RLIMIT_NICE, "RLIMIT_NOFILE": unix.RLIMIT_NOFILE,
	"RLIMIT_NPROC": unix.RLIMIT_NPROC, "RLIMIT_RTPRIO": unix.RLIMIT_RTPRIO, "RLIMIT_RTTIME": unix.RLIMIT_RTTIME,
	"RLIMIT_SIGPENDING": unix.RLIMIT_SIGPENDING, "RLIMIT_STACK": unix.RLIMIT_STACK,
}

// Fit lowers a limit that this host does not let us raise to the most
// that it does: a job that asks for unlimited locked memory gets what there is.
func Fit(r *specs.POSIXRlimit) {
	kind, ok := rlimits[r.Type]
	if !ok {
		return // Of reports it
	}
	var have unix.Rlimit
	if unix.Getrlimit(kind, &have) != nil || r.Hard <= have.Max {
		return
	}
	if unix.Setrlimit(kind, &unix.Rlimit{Cur: have.Cur, Max: r.Hard}) == nil {
		return
	}
	r.Hard, r.Soft = have.Max, min(r.Soft, have.Max)
}

// WithoutUser is the spec's namespaces but for the user's: specconv would
// begin two processes to find out the map that we know.
func WithoutUser(all []specs.LinuxNamespace) []specs.LinuxNamespace {
	var out []specs.LinuxNamespace
	for _, ns := range all {
		if ns.Type != specs.UserNamespace {
			out = append(out, ns)
		}
	}
	return out
}

// BundleAt tells hooks where the container's directory is to them.
func BundleAt(config *configs.Config, dir string) {
	for i, label := range config.Labels {
		if strings.HasPrefix(label, "bundle=") {
			config.Labels[i] = "bundle=" + dir
		}
	}
}

// Limits are this process's own.
func Limits() map[int]unix.Rlimit {
	all := map[int]unix.Rlimit{}
	for _, kind := range rlimits {
		var r unix.Rlimit
		if unix.Getrlimit(kind, &r) == nil {
			all[kind] = r
		}
	}
	return all
}

// Same makes this process's limits what they were, and says whether they are.
func Same(limits map[int]unix.Rlimit) bool {
	for kind, was := range limits {
		var is unix.Rlimit
		if unix.Getrlimit(kind, &is) != nil || is != was {
			return false
		}
	}
	return true
}

// FitHost adjusts what only the running kernel knows. The memory limit ends all, or one process.
func FitHost(spec *specs.Spec, host cgroups.Host, one bool) {
	res := spec.Linux.Resources
	if res != nil && res.Memory != nil {
		if host.Mode == cgroups.V2 && !one {
			res.Unified = map[string]string{"memory.oom.group": "1"}
		} else if host.Mode != cgroups.V2 && !exists(host.Mounts["memory"]+"/memory.memsw.limit_in_bytes") {
			res.Memory.Swap = nil // the kernel does not count swap
		}
	}
	for i := range spec.Process.Rlimits {
		Fit(&spec.Process.Rlimits[i])
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
