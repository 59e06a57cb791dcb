package conns

import (
	"crypto/tls"
	"net"
	"sync"
	"time"
)

// When who leads dies, all nodes come to the next one within a tenth of a second, and what TLS has to compute for a
// thousand of them takes all processors for about one. Controllers that hear nothing from each other for so long take
// another one for gone, and elect again. So few are computed at the same time, and others wait in the kernel.
// Who says nothing holds up the others once, for a moment; how many of those there may be is for the Table to say.
const (
	handshakes = 64
	handshake  = 20 * time.Millisecond // who takes longer does not compute but wait, and counts no more
)

type tlsListener struct {
	net.Listener
	config *tls.Config
	places chan struct{}
}

// TLS is tls.NewListener with a bound on handshakes at the same time.
func TLS(ln net.Listener, config *tls.Config) net.Listener {
	return &tlsListener{ln, config, make(chan struct{}, handshakes)}
}

// Accept does not wait for the handshake, which its caller can have as from tls.NewListener.
func (l *tlsListener) Accept() (net.Conn, error) {
	l.places <- struct{}{}
	free := sync.OnceFunc(func() { <-l.places })
	raw, err := l.Listener.Accept()
	if err != nil {
		free()
		return nil, err
	}
	c := tls.Server(raw, l.config)
	late := time.AfterFunc(handshake, free)
	go func() { // ends with the handshake, for which the caller sets a deadline, or with the connection
		_ = c.Handshake() // the caller is told the same
		late.Stop()
		free()
	}()
	return c, nil
}
