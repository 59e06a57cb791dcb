package netns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
)

// Service keeps up what a namespace has of its host: connections to its ports, and answers
// of name servers. Methods do nothing on nil.
type Service struct {
	forwards []*Forward
	relay    *Relay
}

// Served is what a namespace is to have of its host.
type Served struct {
	Namespace *os.File
	Addr      netip.Addr       // its own
	Ports     []uint16         // there
	Listeners []*os.File       // on the host, one for each port; they are taken over
	Servers   []netip.AddrPort // of names; none: it asks them itself
}

// NewService makes what keeps that up.
func NewService(o Served) (*Service, error) {
	n := &Service{}
	for i, port := range o.Ports {
		l, err := inheritListener(o.Listeners[i])
		if err != nil {
			return nil, fmt.Errorf("take over the listener for port %d: %w", port, err)
		}
		n.forwards = append(n.forwards, &Forward{Listener: l, Namespace: o.Namespace, Addr: o.Addr, Port: port})
	}
	if len(o.Servers) > 0 {
		relay, err := NewRelay(o.Namespace, o.Servers)
		if err != nil {
			return nil, err
		}
		n.relay = relay
	}
	return n, nil
}

// Plain says that there is nothing to do but to hold the namespace.
func (n *Service) Plain() bool { return n == nil || len(n.forwards) == 0 && n.relay == nil }

func inheritListener(f *os.File) (*net.TCPListener, error) {
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, err
	}
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return nil, errors.Join(errors.New("it is no TCP listener"), l.Close())
	}
	return tcp, nil
}

// Serve begins to pass on connections and questions, once the program runs.
// Who connected earlier has waited in the kernel's queue.
func (n *Service) Serve() {
	if n == nil {
		return
	}
	for _, f := range n.forwards {
		go f.Run() // ends with close, its connections with the process
	}
	if n.relay != nil {
		go n.relay.Run() // ends with close
	}
}

// Close frees the ports.
func (n *Service) Close() {
	if n == nil {
		return
	}
	for _, f := range n.forwards {
		f.Listener.Close()
	}
	if n.relay != nil {
		n.relay.Close()
	}
}
