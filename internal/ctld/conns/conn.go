package conns

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// Conn is a connection that is counted.
type Conn struct {
	net.Conn
	table  *Table
	number uint64 // in the order in which they came
	from   string // an address, or the user of the socket
	local  bool   // by a unix socket
	uid    uint32 // of who is on the other side of it

	owner owner // guarded by Table.mu
	in    bool  // the table has it
}

// Close closes it and makes room for another.
func (c *Conn) Close() error {
	c.table.mu.Lock()
	c.table.remove(c)
	c.table.mu.Unlock()
	return c.Conn.Close()
}

// UID is the number of the user on the other side of a unix socket, as the kernel
// says it; false: it came by the network.
func (c *Conn) UID() (uid uint32, local bool) {
	if c == nil {
		return 0, false
	}
	return c.uid, c.local
}

type connKey struct{}

// Context keeps the connection for its requests.
func Context(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if p, ok := c.(*paced); ok {
		c = p.Conn
	}
	cc, ok := c.(*Conn)
	if !ok {
		return ctx
	}
	return context.WithValue(ctx, connKey{}, cc)
}

// Of is the connection of a request; nil: it is not counted.
func Of(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}

type listener struct {
	net.Listener
	table *Table
}

// Listen counts what a listener accepts. What there is no room for at all is
// closed at once.
func (t *Table) Listen(ln net.Listener) net.Listener { return &listener{ln, t} }

func (l *listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &Conn{Conn: raw, table: l.table}
		if c.uid, c.local, err = caller(raw); err != nil {
			_ = raw.Close() // it has gone
			continue
		}
		if c.local {
			c.from = fmt.Sprintf("uid %d", c.uid)
		} else {
			c.from = AddressOf(raw.RemoteAddr().String())
		}
		out, ok := l.table.admit(c)
		if out != nil {
			_ = out.Conn.Close() // whatever it says: it is given up
		}
		if ok {
			return c, nil
		}
		_ = raw.Close() // the same
	}
}

// Local is a connection that is of no network and knows who is on the other side.
type Local interface {
	net.Conn
	Peer() (uid uint32)
}

// caller says who is on the other side, where that is a user of this machine.
func caller(raw net.Conn) (uid uint32, local bool, err error) {
	switch c := raw.(type) {
	case *net.UnixConn:
		uid, err = peer(c)
		return uid, true, err
	case Local:
		return c.Peer(), true, nil
	}
	return 0, false, nil
}

// peer asks the kernel who is on the other side.
func peer(c *net.UnixConn) (uint32, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	if cerr := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); cerr != nil {
		return 0, cerr
	}
	if err != nil {
		return 0, err
	}
	return cred.Uid, nil
}

// Descriptors that are not for connections: files of the store, and the pipes of
// programs that look up users.
const (
	reserved = 1536
	few      = 4096 // below it half of them
)

// Most is how many connections the limit of open files allows. The Go runtime has
// raised that to what is allowed at all.
func Most() (int, error) {
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err != nil {
		return 0, fmt.Errorf("ask for the limit of open files: %w", err)
	}
	n := int(min(lim.Cur, 1<<22))
	if n < few {
		return n / 2, nil
	}
	return n - reserved, nil
}
