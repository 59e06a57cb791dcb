// Package need is what nodes have and jobs need beside amounts and the site's own
// features: networks, privileges, runtimes. They are features to the scheduler, so
// that it explains them like any other. It is pure.
package need

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// The networks that containers can have on a node are features to the
// scheduler, so that it explains them like any other.
const (
	featureBridge = "NETWORK_BRIDGE" // a network of their own
	featureGang   = "NETWORK_GANG"   // and one that ranks on several nodes share
	featureHost   = "NETWORK_HOST"   // the node's

	featurePrivileged = "PRIVILEGED" // privileged jobs may run there
	featureCapability = "CAP_"       // and its name: jobs may ask for it there

	featureSeveral = "PROGRAMS_BESIDE" // several programs of a job can run at once
	featureDivides = "GPUS_DIVIDED"    // and each have some of its GPUs
	featureCovers  = "FILES_IN_MOUNTS" // a job's files can lie in what it mounts

	featureRuntime    = "RUNTIME_"     // and its name: containers can be run by it
	featureRuntimeGPU = "RUNTIME_GPU_" // and its name: those with GPUs too
)

// Has are the features that a node has by itself.
func Has(inv state.Inventory) []string {
	var list []string
	if inv.Bridge {
		list = append(list, featureBridge)
	}
	if inv.Gang {
		list = append(list, featureGang)
	}
	if !inv.NoHost {
		list = append(list, featureHost)
	}
	if inv.Privileged {
		list = append(list, featurePrivileged)
	}
	if inv.Several {
		list = append(list, featureSeveral)
	}
	if inv.Divides {
		list = append(list, featureDivides)
	}
	if inv.Covers {
		list = append(list, featureCovers)
	}
	for _, c := range inv.Capabilities {
		list = append(list, featureCapability+string(c))
	}
	for _, r := range inv.Runtimes {
		if list = append(list, featureRuntime+r.Name); !r.NoGPUs {
			list = append(list, featureRuntimeGPU+r.Name)
		}
	}
	return list
}

// Of are the features that a job needs.
func Of(s *job.Spec) []string {
	list := slices.Concat(network(s), privilege(s), runtime(s))
	if s.Several() {
		list = append(list, featureSeveral)
	}
	if s.DividesGPUs() {
		list = append(list, featureDivides)
	}
	if coversFiles(s) {
		list = append(list, featureCovers)
	}
	return list
}

// coversFiles says whether a file of the job lies in what its program mounts.
func coversFiles(s *job.Spec) bool {
	covers := func(files []job.File, mounts []job.Storage) bool {
		return slices.ContainsFunc(files, func(f job.File) bool {
			return slices.ContainsFunc(mounts, func(m job.Storage) bool {
				return strings.HasPrefix(f.Path, strings.TrimSuffix(m.ContainerPath, "/")+"/")
			})
		})
	}
	return covers(s.Files(), s.Request.Docker.Storage) || slices.ContainsFunc(s.Programs(), func(b job.Before) bool { return covers(b.Files, b.Storage) })
}

// runtime are the features that a job needs for its runtime.
func runtime(s *job.Spec) []string {
	switch name := s.Runtime(); {
	case name == "":
		return nil
	case s.AsksGPUs():
		return []string{featureRuntimeGPU + name}
	default:
		return []string{featureRuntime + name}
	}
}

// RuntimesHint is which nodes have which runtimes, for a job that cannot have its.
func RuntimesHint(nodes *state.Nodes, want string) string {
	at := map[string][]string{}
	for n := range nodes.All() {
		for _, r := range n.Inventory.Runtimes {
			name := r.Name
			if r.NoGPUs {
				name += " (no GPUs)"
			}
			at[name] = append(at[name], n.Name)
		}
	}
	if len(at) == 0 {
		return fmt.Sprintf("no node has the runtime %s, or any other: they are named by runtimes in gnoded.yaml", want)
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(at)) {
		list = append(list, name+" on "+strings.Join(at[name][:min(len(at[name]), maxNamed)], ", "))
	}
	return "runtimes here: " + strings.Join(list[:min(len(list), maxNamed)], "; ")
}

// maxNamed bounds how many nodes, and runtimes, are named to a user.
const maxNamed = 8

// network are the features that a job needs for its network.
func network(s *job.Spec) []string {
	switch {
	case s.Network() == job.NetworkHost:
		return []string{featureHost}
	case s.Ranks() > 1:
		return []string{featureBridge, featureGang}
	}
	return []string{featureBridge}
}

// privilege are the features of nodes that allow what a job asks for. A
// privileged job has its node to itself: it could open other jobs' devices and
// memory.
func privilege(s *job.Spec) (list []string) {
	if s.Privileged() {
		list = append(list, featurePrivileged)
	}
	for _, c := range s.Capabilities() {
		list = append(list, featureCapability+string(c))
	}
	return list
}
