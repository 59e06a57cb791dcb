package oci

import (
	"fmt"
	"os"
	"slices"

	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"gbatch/oci/stdio"
	"gbatch/oci/userns"
)

// received is what a shim was handed over, and whose ids its container has by it.
// It is taken once, before anything is made of it, and does not change after.
type received struct {
	files []*os.File  // Handover.files
	ids   userns.Map  // of the container; zero: the host's
	user  *os.File    // the user namespace, one of files; nil: the host's
	stdio stdio.Files // the last of files
}

// take takes hold of the files, in the order of Handover.files, unless they came
// with a message.
func (r *received) take(linux *specs.Linux, cfg *ShimConfig) error {
	r.ids = userns.Map{UIDs: linux.UIDMappings, GIDs: linux.GIDMappings}
	want := 0
	if !r.ids.IsZero() {
		want = 1
	}
	if cfg.Network != nil {
		want += 1 + len(cfg.Network.Ports)
	}
	want += cfg.Stdio.Count()
	if r.files == nil {
		for i := range want {
			unix.CloseOnExec(fdHanded + i)
			r.files = append(r.files, os.NewFile(uintptr(fdHanded+i), "handed over"))
		}
	}
	if len(r.files) != want {
		return fmt.Errorf("%d files were handed over, not %d", len(r.files), want)
	}
	if !r.ids.IsZero() {
		r.user = r.files[0]
	}
	r.stdio = cfg.Stdio.Of(r.files[want-cfg.Stdio.Count():])
	return nil
}

// network is the files of the container's network, if there is one: its
// namespace, and a listener on the host for each of its ports.
func (r *received) network(ports int) (namespace *os.File, listeners []*os.File) {
	files := r.files
	if r.user != nil {
		files = files[1:]
	}
	return files[0], files[1 : 1+ports]
}

// give makes a pipe the user's of a process, who may open it anew by its name
// in /proc then. Of anything else it is no matter.
func (r *received) give(f *os.File, u specs.User) {
	st, err := f.Stat()
	if err != nil || st.Mode()&os.ModeNamedPipe == 0 {
		return
	}
	if uid, gid, ok := r.ids.Host(u.UID, u.GID); ok {
		_ = f.Chown(uid, gid)
	}
}

// pathOf names an open file for the container's set-up, which is another
// process. By the thread and not by the process: the set-up may look at what is
// confined as it is itself, see confine.Thread.
func pathOf(f *os.File) string { return fmt.Sprintf("/proc/%d/fd/%d", unix.Gettid(), f.Fd()) }

// inheritLocked gives the container its limit of locked memory by the shim's own.
// That of a process in another user namespace may only be set with a capability
// that a daemon in a container of its own has not.
func (r *received) inheritLocked(p *specs.Process) {
	if r.user == nil {
		return
	}
	p.Rlimits = slices.DeleteFunc(p.Rlimits, func(l specs.POSIXRlimit) bool {
		return l.Type == "RLIMIT_MEMLOCK" && unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: l.Soft, Max: l.Hard}) == nil
	})
}

// joinUser makes the container use the user namespace that was handed over.
func (r *received) joinUser(config *configs.Config) {
	if r.user == nil {
		return
	}
	config.Namespaces.Add(configs.NEWUSER, pathOf(r.user))
	config.UIDMappings, config.GIDMappings = configMap(r.ids.UIDs), configMap(r.ids.GIDs)
}

func configMap(extents []specs.LinuxIDMapping) []configs.IDMap {
	var out []configs.IDMap
	for _, e := range extents {
		out = append(out, configs.IDMap{ContainerID: int64(e.ContainerID), HostID: int64(e.HostID), Size: int64(e.Size)})
	}
	return out
}
