package netns

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// PortRange is where free ports come from, both ends included.
type PortRange struct {
	First uint16
	Last  uint16
}

// DefaultPorts stay clear of the ports that the kernel gives to clients, and
// of those that clusters of containers publish by custom.
var DefaultPorts = PortRange{First: 20000, Last: 29999}

// Listen takes a TCP port on the node. ip is one of its addresses, or invalid
// for all of them, by IPv4 and IPv6. A port of 0 is any free one of the range;
// another one that somebody has is a *PortInUseError.
func Listen(ip netip.Addr, port uint16, r PortRange) (*net.TCPListener, error) {
	if port != 0 {
		l, err := listen(ip, port)
		if errors.Is(err, unix.EADDRINUSE) {
			return nil, &PortInUseError{Addr: ip, Port: port}
		}
		return l, err
	}
	if r.First == 0 || r.Last < r.First {
		return nil, fmt.Errorf("choose a port: %d to %d is no range", r.First, r.Last)
	}
	// From anywhere in the range, so that a port is not used again at once:
	// somebody may still know it as another job's.
	size := int(r.Last) - int(r.First) + 1
	start := rand.IntN(size)
	for i := range size {
		l, err := listen(ip, r.First+uint16((start+i)%size))
		if !errors.Is(err, unix.EADDRINUSE) {
			return l, err
		}
	}
	return nil, &PortInUseError{Addr: ip, Range: r}
}

func listen(ip netip.Addr, port uint16) (*net.TCPListener, error) {
	host := ""
	if ip.IsValid() {
		host = ip.String()
	}
	var lc net.ListenConfig
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(context.Background(), "tcp", net.JoinHostPort(host, fmt.Sprint(port)))
	switch {
	case errors.Is(err, unix.EADDRNOTAVAIL):
		return nil, &NoAddressError{Addr: ip}
	case err != nil:
		return nil, fmt.Errorf("listen on port %d: %w", port, err)
	}
	return l.(*net.TCPListener), nil
}

// PortInUseError says that a port, or each of a range, is taken.
type PortInUseError struct {
	Addr  netip.Addr // asked for; invalid: all
	Port  uint16     // 0: all of Range
	Range PortRange
}

func (e *PortInUseError) Error() string {
	if e.Port == 0 {
		return fmt.Sprintf("all ports from %d to %d are in use", e.Range.First, e.Range.Last)
	}
	return fmt.Sprintf("port %d is in use", e.Port)
}

// NoAddressError says that the node does not have an address.
type NoAddressError struct{ Addr netip.Addr }

func (e *NoAddressError) Error() string {
	return fmt.Sprintf("%s is not an address of this node", e.Addr)
}
