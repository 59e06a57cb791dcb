package ssh

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"gbatch/internal/api"
	"gbatch/internal/client"
)

// directTCP connects to an address as the job sees it: ssh's -L, -D, -W and -J.
func (s *server) directTCP(ctx context.Context, c ssh.NewChannel) {
	host, port, ok := tcpTarget(c.ExtraData())
	if !ok {
		_ = c.Reject(ssh.ConnectionFailed, "no address to connect to") // or the client has gone
		return
	}
	if own(host) {
		s.forward(ctx, c, port)
		return
	}
	s.connect(ctx, c, "tcp", net.JoinHostPort(host, strconv.FormatUint(uint64(port), 10)))
}

// tcpTarget reads which address a client wants.
func tcpTarget(payload []byte) (host string, port uint16, ok bool) {
	var m struct {
		Host       string
		Port       uint32
		Origin     string
		OriginPort uint32
	}
	if err := ssh.Unmarshal(payload, &m); err != nil || m.Port == 0 || m.Port > 1<<16-1 || strings.ContainsAny(m.Host, "\x00\n") {
		return "", 0, false
	}
	return m.Host, uint16(m.Port), true
}

// own says that a name is the job's own loopback interface.
func own(host string) bool {
	return host == "localhost" || host == "127.0.0.1" || host == "::1"
}

// directUnix connects to a socket's path in the job.
func (s *server) directUnix(ctx context.Context, c ssh.NewChannel) {
	path, ok := unixTarget(c.ExtraData())
	if !ok {
		_ = c.Reject(ssh.ConnectionFailed, "no path to connect to") // or the client has gone
		return
	}
	s.connect(ctx, c, "unix", path)
}

// unixTarget reads which path a client wants.
func unixTarget(payload []byte) (path string, ok bool) {
	var m struct {
		Path     string
		Reserved string
		Unused   uint32
	}
	if err := ssh.Unmarshal(payload, &m); err != nil || m.Path == "" || strings.Contains(m.Path, "\x00") {
		return "", false
	}
	return m.Path, true
}

// forward joins a channel with a port of the job by the node's own way, which
// starts no process in the container.
func (s *server) forward(ctx context.Context, c ssh.NewChannel, port uint16) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	st, err := s.app.Client.Enter(ctx, api.StreamForward, s.host.Job, s.host.Rank)
	if err == nil {
		defer st.Close()
		err = st.Send(ctx, api.JSONFrame(api.FrameStart, api.ForwardStart{Port: port}))
	}
	if err != nil {
		_ = c.Reject(ssh.ConnectionFailed, err.Error()) // or the client has gone
		return
	}
	s.join(ctx, st, c, nil)
}

// connect joins a channel with a connection that is made from inside the
// container, with all that the job may reach and nothing else.
func (s *server) connect(ctx context.Context, c ssh.NewChannel, network, address string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	st, err := s.exec(ctx)
	if err == nil {
		defer st.Close()
		start := api.ExecStart{Tool: api.ToolConnect, Args: []string{network, address}, User: s.user}
		err = st.Send(ctx, api.JSONFrame(api.FrameStart, start))
	}
	var first []byte
	if err == nil {
		first, err = connected(ctx, st)
	}
	if err != nil {
		_ = c.Reject(ssh.ConnectionFailed, err.Error()) // or the client has gone
		return
	}
	s.join(ctx, st, c, first)
}

// connected waits for the connection, and gives the bytes that came with the word
// of it.
func connected(ctx context.Context, st *client.Stream) (first []byte, err error) {
	var why strings.Builder
	for {
		f, err := st.Receive(ctx)
		if err != nil {
			return nil, err
		}
		switch f.Type {
		case api.FrameOutput:
			if len(f.Data) > 0 && f.Data[0] == api.Connected {
				return f.Data[1:], nil
			}
			return nil, errors.New("the node answers with something else than a connection")
		case api.FrameErrOutput:
			if why.Len() < api.FrameChunk {
				why.Write(f.Data)
			}
		case api.FrameError:
			return nil, f.Failure()
		case api.FrameExit:
			return nil, errors.New(strings.TrimSpace(why.String()))
		}
	}
}

// join accepts a channel and copies both ways until both sides have said their
// last.
func (s *server) join(ctx context.Context, st *client.Stream, c ssh.NewChannel, first []byte) {
	ch, requests, err := c.Accept()
	if err != nil {
		return
	}
	defer ch.Close()
	go ssh.DiscardRequests(requests) // ends with the channel
	if _, err := ch.Write(first); err != nil {
		return
	}
	if err := st.Join(ctx, ch); err != nil && ctx.Err() == nil {
		s.note(err.Error())
	}
}
