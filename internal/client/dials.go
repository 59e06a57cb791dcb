package client

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"gbatch/internal/pki"
)

// dials makes the connections to several controllers, one at a time to each host. A request that waited for one in vain goes on to the
// next host, and what was begun for it goes on: a controller that is slow, as all nodes have come to it, would
// have to compute another handshake for each time that it is asked.
type dials struct {
	connect func(ctx context.Context, network, address string) (net.Conn, error)

	mu    sync.Mutex
	hosts map[string]chan struct{} // has one while a connection is made
}

func newDials(connect func(ctx context.Context, network, address string) (net.Conn, error)) *dials {
	return &dials{connect: connect, hosts: map[string]chan struct{}{}}
}

// connects is a Transport's DialTLSContext that goes on from the last session where it can.
func connects(dialer *net.Dialer, config *tls.Config) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if again := pki.Resuming(config); again != nil {
			c, err := connect(ctx, dialer, address, again)
			if err != nil {
				return nil, err
			}
			if c.ConnectionState().DidResume {
				return c, nil
			}
			_ = c.Close()
		}
		c, err := connect(ctx, dialer, address, config)
		if err != nil {
			return nil, err // not a nil connection of a type
		}
		return c, nil
	}
}

func connect(ctx context.Context, dialer *net.Dialer, address string, config *tls.Config) (*tls.Conn, error) {
	raw, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	c := tls.Client(raw, config)
	if err := c.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return c, nil
}

// offered is how long a connection that was made for a request which does not want it any more is left to others, before another one is begun.
const offered = 20 * time.Millisecond

var errUnwanted = errors.New("nobody wants this connection any more")

type wantedKey struct{}

// wanted says until when the request of a context wants a connection that it begins.
func wanted(ctx context.Context, over <-chan struct{}) context.Context {
	return context.WithValue(ctx, wantedKey{}, over)
}

// dial is a Transport's DialTLSContext.
func (d *dials) dial(ctx context.Context, network, address string) (net.Conn, error) {
	over, _ := ctx.Value(wantedKey{}).(<-chan struct{})
	turn := d.turn(address)
	select {
	case turn <- struct{}{}:
	case <-over:
		return nil, errUnwanted
	}
	free := func() { <-turn }
	select {
	case <-over:
		free()
		return nil, errUnwanted
	default:
	}
	conn, err := d.connect(ctx, network, address)
	select {
	case <-over:
		time.AfterFunc(offered, free) // who waits gets this one
	default:
		free()
	}
	return conn, err
}

func (d *dials) turn(address string) chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hosts[address] == nil {
		d.hosts[address] = make(chan struct{}, 1)
	}
	return d.hosts[address]
}
