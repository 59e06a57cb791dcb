// Package affinity binds this process to processors.
package affinity

import (
	"fmt"
	"os"
	"strconv"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"gbatch/cgroups"
	"gbatch/oci/failure"
)

// OfSpec binds the shim to its container's cores. A job that prints
// without end keeps its shim busy too, and that must cost its own cores, not
// those of another job. The container itself is bound by its cgroup only:
// libcontainer undoes what it inherits from here.
func OfSpec(spec *specs.Spec) error {
	res := spec.Linux.Resources
	if res == nil || res.CPU == nil || res.CPU.Cpus == "" {
		return nil
	}
	cpus, err := cgroups.ParseCPUSet(res.CPU.Cpus)
	if err != nil {
		return err
	}
	return To(cpus)
}

// To binds this process to cores.
func To(cpus cgroups.CPUSet) error {
	var mask unix.CPUSet
	for _, c := range cpus.List() {
		mask.Set(c)
	}
	if err := Threads(&mask); err != nil {
		return &failure.Failure{Kind: failure.CgroupFailed, Message: fmt.Sprintf("processors %s cannot be used on this node", cpus), Detail: err.Error()}
	}
	return nil
}

// Threads binds this process to processors.
func Threads(mask *unix.CPUSet) error {
	// The kernel binds one thread at a time; those to come inherit it.
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("bind shim to its cores: %w", err)
	}
	for _, t := range tasks {
		tid, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		if err := unix.SchedSetaffinity(tid, mask); err != nil && err != unix.ESRCH {
			return err
		}
	}
	return nil
}
