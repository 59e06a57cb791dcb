package controllers

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"time"

	"gbatch/internal/ctld/site"
	"gbatch/internal/pki"
)

// Statement is what a controller says of itself to the one that leads.
type Statement struct {
	Version    string        `json:"version"`
	Settings   site.Settings `json:"settings,omitempty"`   // of its configuration file as it is now
	Unreadable string        `json:"unreadable,omitempty"` // why that file cannot be used; empty: it can
	Applied    uint64        `json:"applied,omitempty"`    // how far it has come in the common log; 0: it is too old to say
	Members    []string      `json:"members,omitempty"`    // the names of those that take part, by what it knows; none: it is too old to say
}

// NewStatement is that of a controller of this version with this configuration.
func NewStatement(version string, source func() (site.Config, error)) Statement {
	c, err := source()
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		return Statement{Version: version, Unreadable: err.Error()}
	}
	return Statement{Version: version, Settings: c.Agreed()}
}

// askWait is how long an answer may take, and maxStatement how long one may be.
const (
	askWait      = 2 * time.Second
	maxStatement = 1 << 20
)

// Answering is a listener for the other controllers, of which those that ask are told what state
// says, and those that give or want files are taken. The rest goes on to whoever accepts.
func Answering(ln net.Listener, state func() Statement, take func(net.Conn)) net.Listener {
	return answering{ln, state, take}
}

type answering struct {
	net.Listener
	state func() Statement
	take  func(net.Conn)
}

func (a answering) Accept() (net.Conn, error) {
	c, err := a.Listener.Accept()
	if t, ok := c.(*tls.Conn); ok {
		c = &asked{Conn: t, at: a}
	}
	return c, err
}

// asked is a connection of which it is not known yet what the other side wants. Whoever accepted
// it reads at once; it gets nothing to read where that is something else.
type asked struct {
	*tls.Conn
	at    answering
	known bool // it is for who accepted it
	taken bool // it is somebody else's now
}

// Close closes a connection that is still its acceptor's.
func (c *asked) Close() error {
	if c.taken {
		return nil
	}
	return c.Conn.Close()
}

func (c *asked) Read(p []byte) (int, error) {
	if c.known {
		return c.Conn.Read(p)
	}
	if err := c.Handshake(); err != nil {
		return 0, err
	}
	switch c.ConnectionState().NegotiatedProtocol {
	case pki.AskProtocol:
	case pki.CopyProtocol:
		c.taken = true
		c.at.take(c.Conn)
		return 0, io.EOF
	default:
		c.known = true
		return c.Conn.Read(p)
	}
	if err := c.SetWriteDeadline(time.Now().Add(askWait)); err != nil {
		return 0, err
	}
	if err := json.NewEncoder(c.Conn).Encode(c.at.state()); err != nil {
		return 0, err
	}
	return 0, io.EOF
}

// Ask asks the controller at an address about itself. One whose version is too old for that says
// nothing: its statement is empty.
func Ask(ctx context.Context, address string, conf *tls.Config) (Statement, error) {
	var s Statement
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	c, err := (&tls.Dialer{Config: conf}).DialContext(ctx, "tcp", address)
	if err != nil {
		return s, err
	}
	defer c.Close()
	if c.(*tls.Conn).ConnectionState().NegotiatedProtocol != pki.AskProtocol {
		return s, nil
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() }) // ends the read
	defer stop()
	if err := json.NewDecoder(io.LimitReader(c, maxStatement)).Decode(&s); err != nil {
		return Statement{}, fmt.Errorf("what it says cannot be read: %w", err)
	}
	return s, nil
}
