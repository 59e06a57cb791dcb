package network

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gbatch/internal/job"
	"gbatch/internal/noded/reason"
	"gbatch/oci/netns"
)

// explain says who has a port, by job where it is one of ours.
func (n *Network) explain(err error) error {
	var busy *netns.PortInUseError
	var none *netns.NoAddressError
	switch {
	case errors.As(err, &none):
		return reason.Errorf(job.BadSpec, "hostIp %s is not an address of node %s", none.Addr, n.node)
	case !errors.As(err, &busy):
		return err
	case busy.Port == 0:
		return reason.Errorf(job.PortInUse, "%v on node %s", err, n.node)
	}
	h := listenerOf(busy.Addr, busy.Port)
	if number, ok := n.jobAt(busy.Port, h); ok {
		return reason.Errorf(job.PortInUse, "port %d of node %s is in use by job %d", busy.Port, n.node, number)
	}
	if h != nil {
		return reason.Errorf(job.PortInUse, "port %d of node %s is in use by %s (process %d)", busy.Port, n.node, h.Command, h.PID)
	}
	return reason.Errorf(job.PortInUse, "port %d of node %s is in use", busy.Port, n.node)
}

// jobAt finds the job that has a port: by what was mapped here, or, in the
// node's own network, by the cgroup of the process that listens.
func (n *Network) jobAt(port uint16, listener *process) (job.Number, bool) {
	if number, ok := n.holder(port); ok {
		return number, true
	}
	if listener == nil {
		return 0, false
	}
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", listener.PID))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(groups)) {
		_, at, _ := strings.Cut(strings.TrimSpace(line), "/")
		if _, below, ok := strings.Cut("/"+at, filepath.Join("/gbatch", n.node)+"/"); ok {
			name, _, _ := strings.Cut(below, "/")
			if id, err := job.ParseRankID(name); err == nil {
				return id.Job, true
			}
		}
	}
	return 0, false
}
