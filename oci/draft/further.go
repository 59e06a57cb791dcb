package draft

import (
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// Further is the spec of a container for another program in it, which has these cores.
func Further(of *specs.Spec, program *specs.Process, cpus string) *specs.Spec {
	spec := *of
	spec.Process = program
	if of.Process != nil {
		program.Capabilities, program.Rlimits = of.Process.Capabilities, of.Process.Rlimits
	}
	if r := of.Linux.Resources; r != nil && r.CPU != nil {
		linux, resources, cpu := *of.Linux, *r, *r.CPU
		cpu.Cpus = cpus
		resources.CPU, linux.Resources, spec.Linux = &cpu, &resources, &linux
	}
	return &spec
}

// EnvValue is that of a variable; of several of the name the last one's.
func EnvValue(env []string, name string) (value string) {
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			value = v
		}
	}
	return value
}
