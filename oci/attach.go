package oci

import (
	"errors"
	"fmt"
	"net"
	"os"

	"gbatch/oci/door"
	"gbatch/oci/message"
	"gbatch/oci/stdio"
	"gbatch/oci/wire"
)

// ErrNoTerminal answers who asks for the terminal of a container without one.
var ErrNoTerminal = errors.New("the container has no terminal")

// Terminal is the user's side of the container's terminal (see
// draft.Request.Terminal), for typing and for its size; it takes deadlines. Its
// output is in the log: reading it here would take that away. The caller
// closes it, which changes nothing for the container.
func (c *Container) Terminal() (*os.File, error) {
	conn, err := door.Dial(c.at.home)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	r, files, err := wire.Ask(conn, wire.Request{Op: wire.OpAttach})
	switch {
	case err != nil:
		return nil, fmt.Errorf("attach: %w", err)
	case r.Seq != 1 || len(files) != 1:
		message.CloseAll(files)
		return nil, ErrNoTerminal
	}
	return stdio.Pollable(files[0])
}

// serveAttach hands the terminal out. Any number of clients may have it. The
// lock is kept meanwhile, as the file is closed when the container has ended.
func (s *shim) serveAttach(conn *net.UnixConn, req wire.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := wire.Reply{Version: wire.Version, Seq: req.Seq}
	switch {
	case s.phase != wire.PhaseRunning || s.spec.Process.Terminal && s.terminal == nil:
		out.Error = errNotRunning.Error()
	case s.terminal != nil:
		return message.Send(conn, out, s.terminal)
	}
	return message.Send(conn, out)
}

// dropTerminal keeps the terminal for the pump alone, which closes it.
func (s *shim) dropTerminal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.terminal = nil
}
