package network

import (
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/prometheus/procfs"
)

// process is one that has a port.
type process struct {
	PID     int
	Command string // the program's name, cut to 15 bytes by the kernel
}

// tcpListen is the kernel's number of the state in its tables.
const tcpListen = 10

// listenerOf looks for who listens on a port, nil if that cannot be told. It
// looks through all processes and is for telling people only.
func listenerOf(ip netip.Addr, port uint16) *process {
	// Not by /proc/net, which shows the namespace of the process's first thread.
	tables, err := procfs.NewFS("/proc/thread-self")
	if err != nil {
		return nil
	}
	var sockets []string
	for _, table := range []func() (procfs.NetTCP, error){tables.NetTCP, tables.NetTCP6} {
		lines, err := table()
		if err != nil {
			continue // without IPv6 there is no such table
		}
		for _, l := range lines {
			if l.St == tcpListen && l.LocalPort == uint64(port) && overlap(ip, l.LocalAddr) {
				sockets = append(sockets, "socket:["+strconv.FormatUint(l.Inode, 10)+"]")
			}
		}
	}
	if len(sockets) == 0 {
		return nil
	}
	return holderOf(sockets)
}

// overlap says whether two listeners' addresses get in each other's way.
func overlap(ip netip.Addr, other net.IP) bool {
	o, _ := netip.AddrFromSlice(other)
	return !ip.IsValid() || ip.IsUnspecified() || o.IsUnspecified() || ip.Unmap() == o.Unmap()
}

func holderOf(sockets []string) *process {
	procs, err := procfs.AllProcs()
	if err != nil {
		return nil
	}
	for _, p := range procs {
		targets, err := p.FileDescriptorTargets()
		if err != nil {
			continue // it ended
		}
		if slices.ContainsFunc(targets, func(t string) bool { return slices.Contains(sockets, t) }) {
			name, _ := p.Comm()
			return &process{PID: p.PID, Command: name}
		}
	}
	return nil
}
