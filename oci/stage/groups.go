package stage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"

	"gbatch/cgroups"
	"gbatch/oci/userns"
)

// Groups are a container's control groups of v1 as it sees them, a mount for each hierarchy, made
// here for the reason that Dev is: by libcontainer these are a third of all mounts of a start.
type Groups struct {
	at    string
	ids   userns.Map
	group string // in each hierarchy
	tops  []string
	flags uint64
}

// TakeGroups has a container find the mounts that Make makes at a place of the stage's. Nil: libcontainer
// makes them, as on v2, where there is one.
func TakeGroups(config *configs.Config, ids userns.Map, at string) *Groups {
	host, err := cgroups.Detect()
	k := slices.IndexFunc(config.Mounts, func(m *configs.Mount) bool { return m.Device == "cgroup" })
	if err != nil || host.Mode == cgroups.V2 || k < 0 || config.Cgroups.Path == "" || !config.Namespaces.Contains(configs.NEWCGROUP) {
		return nil
	}
	m := config.Mounts[k]
	g := &Groups{at: at, ids: ids, group: config.Cgroups.Path, tops: host.Controllers(), flags: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC}
	if m.Flags&unix.MS_RDONLY != 0 {
		g.flags |= unix.MOUNT_ATTR_RDONLY
	}
	config.Mounts = slices.Clone(config.Mounts)
	config.Mounts[k] = &configs.Mount{Source: at, Destination: m.Destination, Device: "bind", Flags: unix.MS_BIND | unix.MS_REC}
	return g
}

// Make makes them, in place of what was made there for a container before, and the groups
// themselves, which libcontainer then finds and enters.
func (g *Groups) Make() error {
	if g == nil {
		return nil
	}
	if err := vacant(g.at); err != nil {
		return err
	}
	uid, gid, _ := g.ids.Host(0, 0)
	if err := unix.Mount("tmpfs", g.at, "tmpfs", 0, fmt.Sprintf("mode=755,uid=%d,gid=%d", uid, gid)); err != nil {
		return err
	}
	for _, top := range g.tops {
		if err := g.show(top); err != nil {
			return fmt.Errorf("%s: %w", top, err)
		}
	}
	return unix.MountSetattr(unix.AT_FDCWD, g.at, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: g.flags})
}

// show shows the container's group of a hierarchy, by the name of that, and by the names
// of its controllers where it has several.
func (g *Groups) show(top string) error {
	group, name := filepath.Join(top, g.group), filepath.Base(top)
	if err := os.Mkdir(group, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		if err := os.MkdirAll(group, 0o755); err != nil { // one above it is missing
			return err
		}
	}
	at := filepath.Join(g.at, name)
	if err := os.Mkdir(at, 0o755); err != nil {
		return err
	}
	if strings.Contains(name, ",") {
		for controller := range strings.SplitSeq(name, ",") {
			if err := os.Symlink(name, filepath.Join(g.at, controller)); err != nil && !errors.Is(err, os.ErrExist) {
				return err
			}
		}
	}
	return unix.Mount(group, at, "", unix.MS_BIND, "")
}
