package ssh

import (
	"net"
	"time"
)

// The rest of a net.Conn, which the library wants and asks nothing of.

func (*stdio) LocalAddr() net.Addr              { return address{} }
func (*stdio) RemoteAddr() net.Addr             { return address{} }
func (*stdio) SetDeadline(time.Time) error      { return nil }
func (*stdio) SetReadDeadline(time.Time) error  { return nil }
func (*stdio) SetWriteDeadline(time.Time) error { return nil }

type address struct{}

func (address) Network() string { return "pipe" }
func (address) String() string  { return "ssh" }
