package cgroups

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	ocicg "github.com/opencontainers/cgroups"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// Limits is what one control group may use. A zero field sets no limit.
type Limits struct {
	// CPUs are the cores that may run the group's threads.
	CPUs CPUSet `json:"cpus,omitzero"`
	// Mems are the NUMA nodes that its memory may come from.
	Mems []int `json:"mems,omitempty"`
	// MemoryBytes bounds memory with everything that is charged to the group:
	// tmpfs pages and page cache too. Swap is never added on top.
	MemoryBytes int64 `json:"memory_bytes,omitempty"`
	// Pids bounds processes and threads together.
	Pids int64 `json:"pids,omitempty"`
	// IO bounds what moves from and to disks.
	IO []IODevice `json:"io,omitempty"`
}

// Validate reports every bad field at once.
func (l Limits) Validate() error {
	var errs []error
	if l.MemoryBytes < 0 {
		errs = append(errs, fmt.Errorf("memory limit %d is negative", l.MemoryBytes))
	}
	if l.MemoryBytes > 0 && l.MemoryBytes < MinMemory {
		errs = append(errs, fmt.Errorf("memory limit %d is below the %d bytes that a container needs to start", l.MemoryBytes, MinMemory))
	}
	if l.Pids < 0 {
		errs = append(errs, fmt.Errorf("pids limit %d is negative", l.Pids))
	}
	for _, m := range l.Mems {
		if m < 0 {
			errs = append(errs, fmt.Errorf("numa node %d is negative", m))
		}
	}
	return errors.Join(errs...)
}

// MinMemory is the smallest memory limit that lets a container's init process
// set itself up: below it the kernel kills the set-up, not the job.
const MinMemory = 6 << 20

// Resources returns the limits as runtime-spec fields, without device rules.
func (l Limits) Resources() *specs.LinuxResources {
	r := &specs.LinuxResources{}
	if !l.CPUs.IsEmpty() || len(l.Mems) > 0 {
		r.CPU = &specs.LinuxCPU{Cpus: l.CPUs.String(), Mems: memList(l.Mems)}
	}
	if l.MemoryBytes > 0 {
		limit, swap := l.MemoryBytes, l.MemoryBytes
		r.Memory = &specs.LinuxMemory{Limit: &limit, Swap: &swap}
	}
	if l.Pids > 0 {
		pids := l.Pids
		r.Pids = &specs.LinuxPids{Limit: &pids}
	}
	r.BlockIO = blockIO(l.IO)
	return r
}

// Apply writes the limits that are set into r, the form that a running
// container is updated with, and leaves the others as they are.
func (l Limits) Apply(r *ocicg.Resources) {
	if !l.CPUs.IsEmpty() {
		r.CpusetCpus = l.CPUs.String()
	}
	if len(l.Mems) > 0 {
		r.CpusetMems = memList(l.Mems)
	}
	if l.MemoryBytes > 0 {
		r.Memory, r.MemorySwap = l.MemoryBytes, l.MemoryBytes
	}
	if l.Pids > 0 {
		pids := l.Pids
		r.PidsLimit = &pids
	}
}

func memList(mems []int) string {
	parts := make([]string, len(mems))
	for i, m := range mems {
		parts[i] = strconv.Itoa(m)
	}
	return strings.Join(parts, ",")
}
