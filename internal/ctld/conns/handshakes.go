package conns

import (
	"crypto/tls"
	"net"
	"runtime"
	"sync"
)

// When who leads dies, all nodes come to the next one within seconds, and what TLS has to compute for a thousand of them takes all
// processors for about one. Controllers that hear nothing from each other for so long take another one for gone, and elect
// again: what they say waits behind each handshake that could go on. And a controller that was begun anew reads its records
// meanwhile, without which nobody has an answer. So handshakes have half of the processors. One
// that waits for the other side computes nothing, and has no place; how many of those there may be is for the Table to say.
type tlsListener struct {
	net.Listener
	config *tls.Config
	places chan struct{}
}

// TLS is tls.NewListener with a bound on handshakes that are computed at the same time.
func TLS(ln net.Listener, config *tls.Config) net.Listener {
	own := config.Clone()
	own.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) { return ending(config, h) }
	return &tlsListener{ln, own, make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
}

// Accept does not wait for the handshake, which its caller begins as with tls.NewListener.
func (l *tlsListener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return tls.Server(&paced{Conn: raw, places: l.places}, l.config), nil
}

// ending is what config has for a client, and has its connection take no place any more when the handshake is all but over:
// crypto/tls says so by VerifyConnection alone, on all connections.
func ending(config *tls.Config, h *tls.ClientHelloInfo) (*tls.Config, error) {
	if config.GetConfigForClient != nil {
		switch theirs, err := config.GetConfigForClient(h); {
		case err != nil:
			return nil, err
		case theirs != nil:
			config = theirs
		}
	}
	own, verify := config.Clone(), config.VerifyConnection
	own.VerifyConnection = func(s tls.ConnectionState) error {
		h.Conn.(*paced).leave(true)
		if verify != nil {
			return verify(s)
		}
		return nil
	}
	return own, nil
}

// paced is a connection whose handshake has one of some places from when the other side has said something until it is waited
// for again.
type paced struct {
	net.Conn
	places chan struct{}

	mu   sync.Mutex
	has  bool // a place
	over bool // the handshake is
}

func (p *paced) Read(b []byte) (int, error) {
	p.leave(false)
	n, err := p.Conn.Read(b)
	p.enter()
	return n, err
}

func (p *paced) Close() error {
	p.leave(true)
	return p.Conn.Close()
}

func (p *paced) enter() {
	p.mu.Lock()
	over := p.over
	p.mu.Unlock()
	if over {
		return
	}
	p.places <- struct{}{}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.has = !p.over; !p.has { // it ended meanwhile
		<-p.places
	}
}

// leave gives the place back, if it has one; over: it takes none any more.
func (p *paced) leave(over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = p.over || over
	if p.has {
		p.has = false
		<-p.places
	}
}
