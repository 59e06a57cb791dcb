package draft

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// Mount shows a directory or file of the host in the container.
type Mount struct {
	Source   string // absolute, on the host, resolved by the caller
	Target   string // absolute, in the container; made if it is missing
	ReadOnly bool   // with all that is mounted below it
}

// Tmpfs is a file system in memory. Its pages are charged to the container:
// the memory limit has to have room for them.
type Tmpfs struct {
	Target string
	Bytes  int64 // must be positive: the kernel's default is half the machine
}

const shmPath = "/dev/shm"

// specMounts returns the standard mounts, then the request's, parents before
// children. A request that puts something on /dev/shm replaces the standard one.
func specMounts(r Request) ([]specs.Mount, error) {
	var errs []error
	seen := map[string]bool{}
	var own []specs.Mount
	add := func(m specs.Mount) {
		if err := CheckTarget(m.Destination); err != nil {
			errs = append(errs, err)
			return
		}
		m.Destination = path.Clean(m.Destination)
		if seen[m.Destination] {
			errs = append(errs, fmt.Errorf("two mounts on %s", m.Destination))
		}
		seen[m.Destination] = true
		own = append(own, m)
	}
	for _, m := range r.Mounts {
		if !path.IsAbs(m.Source) {
			errs = append(errs, fmt.Errorf("mount source %q must be absolute", m.Source))
		}
		add(Bind(m))
	}
	for _, t := range r.Tmpfs {
		if t.Bytes <= 0 {
			errs = append(errs, fmt.Errorf("tmpfs on %s needs a size", t.Target))
		}
		add(tmpfsMount(t))
	}
	if r.ShmBytes < 0 {
		errs = append(errs, fmt.Errorf("size %d of /dev/shm is negative", r.ShmBytes))
	}
	slices.SortStableFunc(own, func(a, b specs.Mount) int { return depth(a) - depth(b) })
	base := baseMounts(r.ShmBytes, sysMount(r))
	if seen[shmPath] {
		base = slices.DeleteFunc(base, func(m specs.Mount) bool { return m.Destination == shmPath })
	}
	return append(base, own...), errors.Join(errs...)
}

// CheckTarget refuses targets that would hide what makes the container one.
func CheckTarget(target string) error {
	if !path.IsAbs(target) {
		return fmt.Errorf("mount target %q must be absolute", target)
	}
	clean := path.Clean(target)
	if clean == "/" {
		return errors.New("mount target / would hide the image")
	}
	for _, p := range []string{"/proc", "/sys", "/dev/pts"} {
		if clean == p || strings.HasPrefix(clean, p+"/") {
			return fmt.Errorf("mount target %s lies in %s, which belongs to the runtime", target, p)
		}
	}
	if clean == "/dev" {
		return errors.New("mount target /dev belongs to the runtime; name a file in it")
	}
	return nil
}

func depth(m specs.Mount) int { return strings.Count(m.Destination, "/") }

// Bind gives no setuid programs and no devices through shared storage.
// Slave propagation lets the host unmount below it while the job runs.
func Bind(m Mount) specs.Mount {
	opts := []string{"rbind", "rslave", "nosuid", "nodev"}
	if m.ReadOnly {
		opts = append(opts, "rro")
	}
	return specs.Mount{Destination: m.Target, Type: "bind", Source: m.Source, Options: opts}
}

func tmpfsMount(t Tmpfs) specs.Mount {
	return specs.Mount{
		Destination: t.Target, Type: "tmpfs", Source: "tmpfs",
		Options: []string{"nosuid", "nodev", "mode=1777", "size=" + strconv.FormatInt(t.Bytes, 10)},
	}
}

// sysMount is /sys. A user namespace may mount one for its own network only;
// in the host's it is shown the host's, which cannot be written there.
func sysMount(r Request) specs.Mount {
	m := specs.Mount{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "noexec", "nodev", "ro"}}
	if r.Network.Host && !r.IDs.IsZero() {
		m.Type, m.Source, m.Options = "bind", "/sys", []string{"rbind", "rslave", "nosuid", "noexec", "nodev", "rro"}
	}
	return m
}

func baseMounts(shm int64, sys specs.Mount) []specs.Mount {
	if shm == 0 {
		shm = defaultShmBytes
	}
	return []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "strictatime", "mode=755", "size=65536k"}},
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts",
			Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}},
		{Destination: "/dev/mqueue", Type: "mqueue", Source: "mqueue", Options: []string{"nosuid", "noexec", "nodev"}},
		tmpfsMount(Tmpfs{Target: shmPath, Bytes: shm}),
		sys,
		{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: []string{"nosuid", "noexec", "nodev", "relatime", "ro"}},
	}
}

// ReadOnlyOnce says read-only in the word that every runtime knows.
func ReadOnlyOnce(mounts []specs.Mount) []specs.Mount {
	out := slices.Clone(mounts)
	for i, m := range out {
		if at := slices.Index(m.Options, "rro"); at >= 0 {
			out[i].Options = slices.Clone(m.Options)
			out[i].Options[at] = "ro"
		}
	}
	return out
}
