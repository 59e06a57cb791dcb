package control

import (
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
)

// networks are the features that a node has by its network.
func networks(inv state.Inventory) []string {
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
	for _, c := range inv.Capabilities {
		list = append(list, featureCapability+string(c))
	}
	return list
}

// networkNeed are the features that a job needs for its network.
func networkNeed(s *job.Spec) []string {
	switch {
	case s.Network() == job.NetworkHost:
		return []string{featureHost}
	case s.Ranks() > 1:
		return []string{featureBridge, featureGang}
	}
	return []string{featureBridge}
}

// privilegeNeed are the features of nodes that allow what a job asks for. A
// privileged job has its node to itself: it could open other jobs' devices and
// memory.
func privilegeNeed(s *job.Spec) (list []string) {
	if s.Privileged() {
		list = append(list, featurePrivileged)
	}
	for _, c := range s.Capabilities() {
		list = append(list, featureCapability+string(c))
	}
	return list
}
