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

// privilegeNeed is the feature of nodes that allow privileged jobs. Such a job
// has its node to itself: it could open other jobs' devices and memory.
func privilegeNeed(s *job.Spec) []string {
	if !s.Privileged() {
		return nil
	}
	return []string{featurePrivileged}
}
