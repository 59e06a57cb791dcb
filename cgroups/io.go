package cgroups

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// IODevice bounds what a group moves from and to one disk. A zero field sets no
// bound. On cgroup v1 writes that go through the page cache are not counted.
type IODevice struct {
	Major, Minor          uint32
	ReadBytes, WriteBytes uint64 // in a second
	ReadOps, WriteOps     uint64
}

// Disk is the device of the disk that a directory lies on, of which its file
// system may be a partition.
func Disk(dir string) (major, minor uint32, err error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return 0, 0, fmt.Errorf("find the disk of %s: %w", dir, err)
	}
	major, minor = unix.Major(st.Dev), unix.Minor(st.Dev)
	sys := fmt.Sprintf("/sys/dev/block/%d:%d", major, minor)
	if !fileExists(sys) {
		return 0, 0, fmt.Errorf("find the disk of %s: its file system is not on a block device", dir)
	}
	if !fileExists(filepath.Join(sys, "partition")) {
		return major, minor, nil
	}
	real, err := filepath.EvalSymlinks(sys)
	if err == nil {
		var text []byte
		if text, err = os.ReadFile(filepath.Join(filepath.Dir(real), "dev")); err == nil {
			_, err = fmt.Sscanf(string(text), "%d:%d", &major, &minor)
		}
	}
	if err != nil {
		return 0, 0, fmt.Errorf("find the disk of %s: %w", dir, err)
	}
	return major, minor, nil
}

// CanThrottle says whether groups below base can be bounded in what they move
// from and to disks.
func (h Host) CanThrottle(base string) error {
	if h.Mode != V2 {
		if h.Mounts["blkio"] == "" {
			return fmt.Errorf("cgroup controller blkio is not mounted")
		}
		return nil
	}
	data, err := os.ReadFile(filepath.Join(h.Mounts[""], base, "cgroup.controllers"))
	if err == nil && !slices.Contains(strings.Fields(string(data)), "io") {
		err = fmt.Errorf("cgroup controller io is not available in %s", base)
	}
	return err
}

// blockIO is the bounds as runtime-spec has them; nil: there are none.
func blockIO(devices []IODevice) *specs.LinuxBlockIO {
	if len(devices) == 0 {
		return nil
	}
	out := &specs.LinuxBlockIO{}
	add := func(to *[]specs.LinuxThrottleDevice, d IODevice, rate uint64) {
		if rate > 0 {
			t := specs.LinuxThrottleDevice{Rate: rate}
			t.Major, t.Minor = int64(d.Major), int64(d.Minor)
			*to = append(*to, t)
		}
	}
	for _, d := range devices {
		add(&out.ThrottleReadBpsDevice, d, d.ReadBytes)
		add(&out.ThrottleWriteBpsDevice, d, d.WriteBytes)
		add(&out.ThrottleReadIOPSDevice, d, d.ReadOps)
		add(&out.ThrottleWriteIOPSDevice, d, d.WriteOps)
	}
	return out
}
