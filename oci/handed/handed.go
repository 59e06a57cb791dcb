// Package handed is what the process of a shim was handed over, and whose ids its
// container has by it. It owns the open files.
package handed

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

// First is the number of the first file where a process inherits them.
const First = 5

// Files is what was handed over. It is taken once, before anything is made of it, and
// does not change after.
type Files struct {
	All   []*os.File  // in their order; nil before Take: they are inherited
	IDs   userns.Map  // of the container; zero: the host's
	User  *os.File    // the user namespace, one of All; nil: the host's
	Stdio stdio.Files // the last of All
}

// Kinds says which files a container has beside its user namespace.
type Kinds struct {
	Network bool // a namespace
	Ports   int  // and a listener for each
	Stdio   *stdio.Names
}

// Take takes hold of the files: the user namespace, the network's, its listeners, and
// the program's. Those that came with a message are there already.
func (r *Files) Take(linux *specs.Linux, with Kinds) error {
	r.IDs = userns.Map{UIDs: linux.UIDMappings, GIDs: linux.GIDMappings}
	want := 0
	if !r.IDs.IsZero() {
		want = 1
	}
	if with.Network {
		want += 1 + with.Ports
	}
	want += with.Stdio.Count()
	if r.All == nil {
		for i := range want {
			unix.CloseOnExec(First + i)
			r.All = append(r.All, os.NewFile(uintptr(First+i), "handed over"))
		}
	}
	if len(r.All) != want {
		return fmt.Errorf("%d files were handed over, not %d", len(r.All), want)
	}
	if !r.IDs.IsZero() {
		r.User = r.All[0]
	}
	r.Stdio = with.Stdio.Of(r.All[want-with.Stdio.Count():])
	return nil
}

// Network is the files of the container's network, if there is one: its
// namespace, and a listener on the host for each of its ports.
func (r *Files) Network(ports int) (namespace *os.File, listeners []*os.File) {
	files := r.All
	if r.User != nil {
		files = files[1:]
	}
	return files[0], files[1 : 1+ports]
}

// Give makes a pipe the user's of a process, who may open it anew by its name
// in /proc then. Of anything else it is no matter.
func (r *Files) Give(f *os.File, u specs.User) {
	st, err := f.Stat()
	if err != nil || st.Mode()&os.ModeNamedPipe == 0 {
		return
	}
	if uid, gid, ok := r.IDs.Host(u.UID, u.GID); ok {
		_ = f.Chown(uid, gid)
	}
}

// PathOf names an open file for the container's set-up, which is another
// process. By the thread and not by the process: the set-up may look at what is
// confined as it is itself, see confine.Thread.
func PathOf(f *os.File) string { return fmt.Sprintf("/proc/%d/fd/%d", unix.Gettid(), f.Fd()) }

// InheritLocked gives the container its limit of locked memory by the shim's own.
// That of a process in another user namespace may only be set with a capability
// that a daemon in a container of its own has not.
func (r *Files) InheritLocked(p *specs.Process) {
	if r.User == nil {
		return
	}
	p.Rlimits = slices.DeleteFunc(p.Rlimits, func(l specs.POSIXRlimit) bool {
		return l.Type == "RLIMIT_MEMLOCK" && unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: l.Soft, Max: l.Hard}) == nil
	})
}

// JoinUser makes the container use the user namespace that was handed over.
func (r *Files) JoinUser(config *configs.Config) {
	if r.User == nil {
		return
	}
	config.Namespaces.Add(configs.NEWUSER, PathOf(r.User))
	config.UIDMappings, config.GIDMappings = configMap(r.IDs.UIDs), configMap(r.IDs.GIDs)
}

func configMap(extents []specs.LinuxIDMapping) []configs.IDMap {
	var out []configs.IDMap
	for _, e := range extents {
		out = append(out, configs.IDMap{ContainerID: int64(e.ContainerID), HostID: int64(e.HostID), Size: int64(e.Size)})
	}
	return out
}
