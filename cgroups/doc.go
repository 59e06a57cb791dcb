// Package cgroups turns an allocation into kernel limits and back into figures.
//
// Reading a machine's topology ([ReadTopology]) and choosing cores from it
// ([Topology.Pick]) are pure. [Find] gives a handle on one control group, by the
// same path on cgroup v1, v2 and on hosts that mount both, to read its usage,
// kill what is in it and remove it. [Sweep] removes groups that nobody owns any
// more and [Check] says what a host lacks.
//
// The package does not create groups: the container runtime does, from the
// values of [Limits]. A path such as "/gbatch/node1/7.0" is always relative to
// the mount point of each hierarchy, and belongs to the caller that chose it.
package cgroups
