package oci

import (
	"os"

	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/oci/result"
)

// lodger is what is to be known of a program in another directory's container. It is all in
// the file of its lock, which also becomes its mark and its result: to make a file costs more
// than whatever is in it.
type lodger struct {
	Config  ShimConfig     `json:"config"`
	Process *specs.Process `json:"process"`
	CPUs    string         `json:"cpus,omitempty"` // that it has; the rest is its container's
}

func (c *ShimConfig) guest() bool { return c.Keep != nil && c.Keep.Owner != "" }

// writeLodger makes a directory for a guest.
func writeLodger(dir string, spec *specs.Spec, cfg ShimConfig) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	l := lodger{Config: cfg, Process: spec.Process}
	l.Config.Layers = nil
	if r := spec.Linux.Resources; r != nil && r.CPU != nil {
		l.CPUs = r.CPU.Cpus
	}
	return result.PutLock(dir, l)
}

// readLodger reads what writeLodger wrote; false: the directory is no guest's.
func readLodger(dir string) (l lodger, guest bool) {
	err := result.GetLock(dir, &l)
	return l, err == nil && l.Process != nil && l.Config.guest()
}

// containerOf is the directory whose container it is that a directory's program runs in.
func containerOf(dir string) string {
	if l, guest := readLodger(dir); guest {
		return l.Config.Keep.Owner
	}
	return dir
}
