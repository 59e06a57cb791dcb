package oci

import (
	"path"
	"strconv"

	"github.com/opencontainers/runtime-spec/specs-go"

	upstream "github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"

	"gbatch/cgroups"
)

// ofPod makes a part's spec that of a container in a group of its own: it has the rules for
// devices, and of limits only its own of memory. All others are the group's above it.
func (p *part) ofPod(i int) {
	spec, linux := *p.Spec, *p.Spec.Linux
	own := &specs.LinuxResources{}
	if linux.Resources != nil {
		own.Devices = linux.Resources.Devices
	}
	if limit := p.MemoryBytes; limit > 0 {
		own.Memory = &specs.LinuxMemory{Limit: new(limit), Swap: new(limit)}
	} else {
		own.Memory = &specs.LinuxMemory{} // that the kernel ends it as a whole
	}
	linux.CgroupsPath, linux.Resources = path.Join(linux.CgroupsPath, "c"+strconv.Itoa(i)), own
	spec.Linux = &linux
	p.Spec = &spec
}

// allOf is what the kernel is told of the group of all.
func allOf(s *shim) (*upstream.Cgroup, error) {
	config, err := configOf(s, s.whole, s.now.root.At)
	if err != nil {
		return nil, err
	}
	r := *config.Cgroups.Resources
	r.SkipDevices, r.Devices = true, nil // each has rules of its own
	r.Unified = nil                      // and is ended as a whole by itself
	config.Cgroups.Resources = &r
	return config.Cgroups, nil
}

// groupOfAll makes the group of all, in which there is no process.
func groupOfAll(s *shim) (upstream.Manager, error) {
	config, err := allOf(s)
	if err != nil {
		return nil, err
	}
	m, err := manager.New(config)
	if err == nil {
		err = m.Apply(-1)
	}
	if err == nil {
		err = m.Set(config.Resources)
	}
	return m, err
}

// set changes the limits of all. On control groups v1 the cores of each are among those of
// all, whichever become more or less.
func (p *several) set(l cgroups.Limits) error {
	config, err := allOf(p.s)
	if err != nil {
		return err
	}
	l.Apply(config.Resources)
	first := p.limits.Set(config.Resources)
	if !l.CPUs.IsEmpty() {
		for _, one := range p.Running() {
			if err := p.stateOf(p.mates[one]).box().set(cgroups.Limits{CPUs: l.CPUs, Mems: l.Mems}); err != nil {
				return err
			}
		}
	}
	if first != nil {
		return p.limits.Set(config.Resources)
	}
	return nil
}
