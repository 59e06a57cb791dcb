// Package setup is what a node's configuration says of its GPUs, without the driver's
// library, which needs C: who reads a configuration does not have to have that.
package setup

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// GPUs is all of it.
type GPUs struct {
	Simulate  Simulation
	Limits    Limits
	Injection Injection
}

// Mode is how containers get their GPUs. The zero value is CDI.
type Mode string

const (
	// CDI writes device nodes, driver files and hooks into the spec, made
	// in this process. It needs nothing on the node but the driver.
	CDI Mode = "cdi"
	// Hook leaves all that to a prestart hook, NVIDIA's by default, which
	// also sets the device rules of the container's cgroup.
	Hook Mode = "hook"
)

// Limits say what of a GPU's links, clocks and memory is borne. The zero value
// makes all checks.
type Limits struct {
	NVLinks   int           // that each GPU has to have; 0: as many as the one of its model that has most, if it ever had any
	Throttled time.Duration // for how long its hardware may slow it down; 0: half a minute

	SkipNVLink, SkipPCIe, SkipThrottle, SkipPages bool
}

// Injection is how containers get GPUs, as far as it is configured.
type Injection struct {
	Mode Mode

	// Hook is the program of mode Hook.
	Hook string

	// Devices are given to every container with GPUs beside them, by full CDI
	// name, as "example.com/rdma=all". They must be in the site's CDI files.
	Devices []string
}

// Validate reports what is wrong with mode and names, without looking at the
// machine. Each line begins with the key that is wrong.
func (i *Injection) Validate() error {
	var errs []error
	if m := i.Mode; m != "" && m != CDI && m != Hook {
		errs = append(errs, fmt.Errorf("mode: %q: use cdi or hook", m))
	}
	if i.Hook != "" && !filepath.IsAbs(i.Hook) {
		errs = append(errs, fmt.Errorf("hook: %q: must be an absolute path", i.Hook))
	}
	if i.Hook != "" && i.Mode != Hook {
		errs = append(errs, errors.New("hook: only used with mode hook"))
	}
	for _, d := range i.Devices {
		kind, name, ok := strings.Cut(d, "=")
		if !ok || name == "" || !strings.Contains(kind, "/") {
			errs = append(errs, fmt.Errorf("devices: %q: write a CDI device as example.com/rdma=all", d))
		}
	}
	return errors.Join(errs...)
}

// MaxSimulated bounds the GPUs of one simulated node.
const MaxSimulated = 64

// Models are the GPUs that can be pretended.
var Models = []string{"a100", "b200", "h100", "h200"}

// Simulation is what GPUs to pretend: a list of models, one for each GPU.
type Simulation []string

// ParseSimulation reads MODEL:N, several of them separated by commas, as
// "h100:8" or "a100:2,h200:2". An empty string is no simulation.
func ParseSimulation(s string) (Simulation, error) {
	if strings.TrimSpace(s) == "" {
		return nil, nil
	}
	var list Simulation
	for part := range strings.SplitSeq(s, ",") {
		model, count, ok := strings.Cut(strings.TrimSpace(part), ":")
		if !ok {
			return nil, fmt.Errorf("simulated GPUs %q: write MODEL:N, as h100:8", part)
		}
		model = strings.ToLower(model)
		if !slices.Contains(Models, model) {
			return nil, fmt.Errorf("simulated GPUs %q: unknown model, use one of %s", part, strings.Join(Models, ", "))
		}
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("simulated GPUs %q: %q is not a number of GPUs", part, count)
		}
		if len(list)+n > MaxSimulated {
			return nil, fmt.Errorf("simulated GPUs %q: at most %d in all", s, MaxSimulated)
		}
		list = append(list, slices.Repeat(Simulation{model}, n)...)
	}
	return list, nil
}
