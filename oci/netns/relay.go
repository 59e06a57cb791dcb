package netns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"
)

// Relay answers a namespace's questions for names by asking servers that only
// the node can reach. Nothing but the questions leaves the namespace.
type Relay struct {
	servers []netip.AddrPort
	udp     *net.UDPConn
	tcp     *net.TCPListener
	busy    chan struct{}
}

const (
	maxQuestions = 256 // at once; more wait
	maxMessage   = 64 << 10
	askTimeout   = 5 * time.Second
)

// NewRelay opens a relay's sockets in a namespace, at the address that
// [Network.ResolvConf] names.
func NewRelay(ns *os.File, servers []netip.AddrPort) (*Relay, error) {
	if len(servers) == 0 {
		return nil, errors.New("relay names: there is no server to ask")
	}
	r := &Relay{servers: servers, busy: make(chan struct{}, maxQuestions)}
	err := inside(ns, func() (err error) {
		if r.udp, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(relayAddr)); err != nil {
			return err
		}
		r.tcp, err = net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(relayAddr))
		return err
	})
	if err != nil {
		if r.udp != nil {
			r.udp.Close()
		}
		return nil, fmt.Errorf("relay names: %w", err)
	}
	return r, nil
}

// Run answers until Close. Questions under way then are given up.
func (r *Relay) Run() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go r.runTCP(ctx) // ends with Close
	buf := make([]byte, maxMessage)
	for {
		n, from, err := r.udp.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			pause(ctx)
			continue
		}
		question := append([]byte(nil), buf[:n]...)
		r.busy <- struct{}{}
		go func() { // ends within askTimeout for each server
			defer func() { <-r.busy }()
			if answer := r.ask(ctx, question); answer != nil {
				_, _ = r.udp.WriteToUDPAddrPort(answer, from)
			}
		}()
	}
}

// Close ends Run.
func (r *Relay) Close() error { return errors.Join(r.udp.Close(), r.tcp.Close()) }

// ask tries one server after the other. Without an answer there is none: the
// client asks again.
func (r *Relay) ask(ctx context.Context, question []byte) []byte {
	for _, s := range r.servers {
		if answer, err := askOne(ctx, s, question); err == nil {
			return answer
		}
	}
	return nil
}

func askOne(ctx context.Context, server netip.AddrPort, question []byte) ([]byte, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp", server.String())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(askTimeout)); err != nil {
		return nil, err
	}
	if _, err := conn.Write(question); err != nil {
		return nil, err
	}
	buf := make([]byte, maxMessage)
	n, err := conn.Read(buf)
	return buf[:n], err
}

// runTCP passes connections on: long answers come by them.
func (r *Relay) runTCP(ctx context.Context) {
	for {
		conn, err := r.tcp.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			pause(ctx)
			continue
		}
		r.busy <- struct{}{}
		go func() { // ends with the connection
			defer func() { <-r.busy }()
			d := net.Dialer{Timeout: askTimeout}
			for _, s := range r.servers {
				if up, err := d.DialContext(ctx, "tcp", s.String()); err == nil {
					join(conn, up.(*net.TCPConn))
					return
				}
			}
			reset(conn)
		}()
	}
}
