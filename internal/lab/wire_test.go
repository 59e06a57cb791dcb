package lab

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"gbatch/internal/pki"
)

// address is a name in place of one of a network.
type address struct{ network, text string }

func (a address) Network() string { return a.network }
func (a address) String() string  { return a.text }

// listener takes connections that are made in this process: no waiting for a network keeps
// the bubble's clock from going on.
type listener struct {
	at     address
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newListener(at address) *listener {
	return &listener{at: at, accept: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *listener) Addr() net.Addr { return l.at }

var errNobody = errors.New("connection refused")

// dial connects somebody who has an address, or on the socket is a user.
func (l *listener) dial(ctx context.Context, from string) (net.Conn, error) {
	h, t := net.Pipe()
	here, there := buffer(h), buffer(t)
	var c net.Conn = remote{there, address{"tcp", from}}
	if l.at.network == "unix" {
		c = local{there}
	}
	select {
	case l.accept <- c:
		return here, nil
	case <-l.closed:
		return nil, errNobody
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// buffered has room for what the other side has not read yet, as a network's connection has:
// in TLS both sides may write before they read.
type buffered struct {
	net.Conn
	written chan []byte // has room for more than is ever under way
	closed  chan struct{}
	once    sync.Once
}

func buffer(c net.Conn) *buffered {
	b := &buffered{Conn: c, written: make(chan []byte, 1024), closed: make(chan struct{})}
	go b.send() // ends when it is closed
	return b
}

func (b *buffered) send() {
	for {
		select {
		case data := <-b.written:
			_, _ = b.Conn.Write(data) // the reader is told of an end
		case <-b.closed:
			_ = b.SetWriteDeadline(time.Now().Add(time.Second))
			for len(b.written) > 0 {
				_, _ = b.Conn.Write(<-b.written)
			}
			_ = b.Conn.Close()
			return
		}
	}
}

func (b *buffered) Write(data []byte) (int, error) {
	select {
	case <-b.closed:
		return 0, net.ErrClosed
	case b.written <- bytes.Clone(data):
		return len(data), nil
	}
}

func (b *buffered) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.SetReadDeadline(time.Now()) // who reads here has its end at once
}

// remote is a connection that came by the network.
type remote struct {
	net.Conn
	from address
}

func (c remote) RemoteAddr() net.Addr { return c.from }

// local is a connection of root's to the socket. Who has a token is whom that names.
type local struct{ net.Conn }

func (local) Peer() uint32 { return 0 }

// bySocket is the connection of commands.
func (s *site) bySocket() *http.Transport {
	return &http.Transport{MaxIdleConnsPerHost: 4, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		l, _ := s.listeners()
		if l == nil {
			return nil, errNobody
		}
		return l.dial(ctx, "")
	}}
}

// byNetwork is the connection of a machine at an address.
func (s *site) byNetwork(from string, tls certificate) *http.Transport {
	return &http.Transport{MaxIdleConnsPerHost: 4, TLSClientConfig: pki.ClientTLS(s.pin, now, tls), DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		_, l := s.listeners()
		if l == nil {
			return nil, errNobody
		}
		return l.dial(ctx, from)
	}}
}
