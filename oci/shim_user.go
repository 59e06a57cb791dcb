package oci

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"gbatch/oci/userns"
	"gbatch/oci/users"
)

// takeHanded takes hold of what was handed over, in the order of Handover.files,
// unless it came with a message.
func (s *shim) takeHanded() error {
	s.ids = userns.Map{UIDs: s.spec.Linux.UIDMappings, GIDs: s.spec.Linux.GIDMappings}
	want := 0
	if !s.ids.IsZero() {
		want = 1
	}
	if s.cfg.Network != nil {
		want += 1 + len(s.cfg.Network.Ports)
	}
	want += s.cfg.Stdio.Count()
	if s.handed == nil {
		for i := range want {
			unix.CloseOnExec(fdHanded + i)
			s.handed = append(s.handed, os.NewFile(uintptr(fdHanded+i), "handed over"))
		}
	}
	if len(s.handed) != want {
		return fmt.Errorf("%d files were handed over, not %d", len(s.handed), want)
	}
	if !s.ids.IsZero() {
		s.user = s.handed[0]
	}
	s.stdio = s.cfg.Stdio.Of(s.handed[want-s.cfg.Stdio.Count():])
	return nil
}

// pathOf names an open file for the container's set-up, which is another
// process. By the thread and not by the process: the set-up may look at what is
// confined as it is itself, see confine.Thread.
func pathOf(f *os.File) string { return fmt.Sprintf("/proc/%d/fd/%d", unix.Gettid(), f.Fd()) }

// hostUser is the container's user by the host's numbers.
func (s *shim) hostUser() (uid, gid int) {
	uid, gid, _ = s.ids.Host(s.spec.Process.User.UID, s.spec.Process.User.GID)
	return uid, gid
}

// resolveSpecUser applies the user that BuildSpec left as text.
func resolveSpecUser(spec *specs.Spec, rootfs string) error {
	var groups []string
	if list := spec.Annotations[groupsAnnotation]; list != "" {
		groups = strings.Split(list, ",")
	}
	if spec.Process.User.Username == "" && len(groups) == 0 {
		return nil // the caller filled in numbers itself
	}
	u, err := users.Resolve(rootfs, spec.Process.User.Username, groups)
	if err != nil {
		return err
	}
	users.Apply(spec, u)
	return nil
}

// withoutUser is the spec's namespaces but for the user's: specconv would
// begin two processes to find out the map that we know.
func withoutUser(all []specs.LinuxNamespace) []specs.LinuxNamespace {
	var out []specs.LinuxNamespace
	for _, ns := range all {
		if ns.Type != specs.UserNamespace {
			out = append(out, ns)
		}
	}
	return out
}

// inheritLocked gives the container its limit of locked memory by the shim's own.
// That of a process in another user namespace may only be set with a capability
// that a daemon in a container of its own has not.
func (s *shim) inheritLocked() {
	if s.user == nil {
		return
	}
	p := s.spec.Process
	p.Rlimits = slices.DeleteFunc(p.Rlimits, func(r specs.POSIXRlimit) bool {
		return r.Type == "RLIMIT_MEMLOCK" && unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: r.Soft, Max: r.Hard}) == nil
	})
}

// joinUser makes the container use the user namespace that was handed over.
func (s *shim) joinUser(config *configs.Config) {
	if s.user == nil {
		return
	}
	config.Namespaces.Add(configs.NEWUSER, pathOf(s.user))
	config.UIDMappings, config.GIDMappings = configMap(s.ids.UIDs), configMap(s.ids.GIDs)
}

func configMap(extents []specs.LinuxIDMapping) []configs.IDMap {
	var out []configs.IDMap
	for _, e := range extents {
		out = append(out, configs.IDMap{ContainerID: int64(e.ContainerID), HostID: int64(e.HostID), Size: int64(e.Size)})
	}
	return out
}

// bundleAt tells hooks where the container's directory is to them.
func bundleAt(config *configs.Config, dir string) {
	for i, label := range config.Labels {
		if strings.HasPrefix(label, "bundle=") {
			config.Labels[i] = "bundle=" + dir
		}
	}
}
