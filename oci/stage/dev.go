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

	"gbatch/oci/userns"
)

// Dev is a container's /dev with what is mounted below it. Libcontainer makes the same in
// the container's first process, by five to ten calls for each name, as it trusts nothing that lies
// in a root file system. What is made here is the shim's alone until the container has it.
type Dev struct {
	at      string
	ids     userns.Map
	mounts  []*configs.Mount // its own first
	devices []string         // of the host, where they are in the container
}

const devPath = "/dev"

// TakeDev has a container of these ids find the /dev that Make makes at a place of the stage's.
// What else is mounted there stays in the configuration. Nil: libcontainer makes all of it.
func TakeDev(config *configs.Config, ids userns.Map, at string) *Dev {
	d := &Dev{at: at, ids: ids}
	for _, n := range config.Devices {
		switch {
		case n.Path == "" || n.Path == "/dev/ptmx": // a rule alone; a link
		case filepath.Clean(n.Path) == n.Path && strings.HasPrefix(n.Path, devPath+"/"):
			d.devices = append(d.devices, n.Path)
		default:
			return nil
		}
	}
	first := slices.IndexFunc(config.Mounts, func(m *configs.Mount) bool { return m.Destination == devPath })
	if first < 0 || config.Mounts[first].Device != "tmpfs" {
		return nil
	}
	var rest []*configs.Mount
	for i, m := range config.Mounts {
		if i == first {
			rest = append(rest, &configs.Mount{Source: at, Destination: devPath, Device: "bind", Flags: unix.MS_BIND | unix.MS_REC})
		}
		switch m.Destination + " " + m.Device {
		case "/dev tmpfs", "/dev/pts devpts", "/dev/shm tmpfs":
			d.mounts = append(d.mounts, m)
		default:
			rest = append(rest, m)
		}
	}
	config.Mounts = rest
	return d
}

// Make makes it, in place of what was made there for a container before.
func (d *Dev) Make() error {
	if d == nil {
		return nil
	}
	if err := vacant(d.at); err != nil {
		return err
	}
	uid, gid, _ := d.ids.Host(0, 0)
	for _, m := range d.mounts {
		if err := d.mount(m, uid, gid); err != nil {
			return fmt.Errorf("mount %s: %w", m.Destination, err)
		}
	}
	for _, name := range d.devices {
		if err := d.show(name, uid, gid); err != nil {
			return fmt.Errorf("show %s: %w", name, err)
		}
	}
	return d.link(uid, gid)
}

// inside is where a name of the container lies on the stage.
func (d *Dev) inside(name string) string { return d.at + strings.TrimPrefix(name, devPath) }

// mount makes a file system of the container's root, as if it had been mounted there.
func (d *Dev) mount(m *configs.Mount, uid, gid int) error {
	at, data := d.inside(m.Destination), m.Data
	if at != d.at {
		if err := d.dir(at, uid, gid); err != nil {
			return err
		}
	}
	if m.Device == "tmpfs" {
		data = fmt.Sprintf("%s,uid=%d,gid=%d", data, uid, gid)
	} else {
		_, terminals, _ := d.ids.Host(0, 5) // the group "tty" of every distribution
		data = strings.Replace(data, "gid=5", fmt.Sprintf("gid=%d", terminals), 1)
	}
	return unix.Mount(m.Source, at, m.Device, uintptr(m.Flags), strings.TrimPrefix(data, ","))
}

// dir makes a directory and those above it.
func (d *Dev) dir(at string, uid, gid int) error {
	err := os.Mkdir(at, 0o755)
	if errors.Is(err, os.ErrNotExist) {
		if err = d.dir(filepath.Dir(at), uid, gid); err == nil {
			err = os.Mkdir(at, 0o755)
		}
	}
	switch {
	case errors.Is(err, os.ErrExist):
		return nil
	case err != nil:
		return err
	}
	return os.Lchown(at, uid, gid)
}

// show shows a device of the host: who is root in a user namespace may not make any.
func (d *Dev) show(name string, uid, gid int) error {
	at := d.inside(name)
	if dir := filepath.Dir(at); dir != d.at {
		if err := d.dir(dir, uid, gid); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(at, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	f.Close()
	return unix.Mount(name, at, "", unix.MS_BIND, "")
}

// link makes the links that every program may expect. They come last: nothing is made
// through them.
func (d *Dev) link(uid, gid int) error {
	links := [][2]string{{"pts/ptmx", "ptmx"}, {"/proc/self/fd", "fd"},
		{"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"}, {"/proc/self/fd/2", "stderr"}}
	if _, err := os.Lstat("/proc/kcore"); err == nil {
		links = append(links, [2]string{"/proc/kcore", "core"})
	}
	for _, l := range links {
		at := filepath.Join(d.at, l[1])
		if err := errors.Join(os.Symlink(l[0], at), os.Lchown(at, uid, gid)); err != nil {
			return err
		}
	}
	return d.dir(filepath.Join(d.at, "mqueue"), uid, gid)
}

// vacant makes a place of the stage's, or takes away what is mounted there.
func vacant(at string) error {
	err := os.Mkdir(at, Mode)
	if errors.Is(err, os.ErrExist) {
		err = UnmountLeft(at)
	}
	return err
}
