package ctld

import (
	"log/slog"
	"net"

	"gbatch/internal/ctld/loop"
	"gbatch/internal/ctld/site"
)

// Machine is what a server has of its machine. What is nil is the machine's own.
type Machine struct {
	Listen func() (socket net.Listener, network net.Listener) // in place of the addresses of the configuration
	Clocks loop.Readings
}

// OpenOn is Open on another machine than this one.
func OpenOn(m Machine, source func() (site.Config, error), log *slog.Logger) (*Server, error) {
	return open(source, nil, m, log)
}

// listeners are the socket and the network.
func (s *Server) listeners() ([]net.Listener, error) {
	if s.machine.Listen == nil {
		return listenAt(*s.rules.Now(), s.log)
	}
	socket, network := s.machine.Listen()
	return []net.Listener{socket, network}, nil
}
