package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/crypto/ssh"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/client"
)

// maxChannels bounds the commands and connections that one SSH connection has at
// once; more are refused.
const maxChannels = 64

// server is one SSH connection to a rank.
type server struct {
	app  *cli.App
	host Host
	user string // of the image; empty: the job's

	slots chan struct{}
	notes sync.Map // what was said once, by its text
}

// Serve speaks SSH with the client at in and out until it goes. Who it is needs no
// proof: it is whoever began this process.
func Serve(ctx context.Context, a *cli.App, host Host, key ssh.Signer) error {
	conf := &ssh.ServerConfig{NoClientAuth: true, ServerVersion: "SSH-2.0-gbatch"}
	conf.AddHostKey(key)
	pipe := &stdio{a.In, a.Out}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { pipe.Close() })()
	conn, channels, requests, err := ssh.NewServerConn(pipe, conf)
	if errors.Is(err, io.EOF) {
		return nil // it looked at the key, and went
	}
	if err != nil {
		return fmt.Errorf("speak with ssh: %w", err)
	}
	defer conn.Close()
	s := &server{app: a, host: host, slots: make(chan struct{}, maxChannels)}
	if s.user = conn.User(); s.user == jobUser {
		s.user = ""
	}
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	work.Go(func() { s.refuseGlobal(requests) }) // ends with the connection
	for c := range channels {
		s.open(ctx, &work, c)
	}
	return nil
}

// refuseGlobal answers what concerns the connection as a whole.
func (s *server) refuseGlobal(requests <-chan *ssh.Request) {
	for r := range requests {
		if r.Type == "tcpip-forward" || r.Type == "streamlocal-forward@openssh.com" {
			s.note("the job cannot open connections to here: -R and RemoteForward are not supported")
		}
		if r.WantReply {
			_ = r.Reply(false, nil) // or the client has gone
		}
	}
}

// note tells the user once.
func (s *server) note(text string) {
	if _, said := s.notes.LoadOrStore(text, true); !said {
		s.app.Say("gexec: %s", text)
	}
}

// open serves one channel in the background.
func (s *server) open(ctx context.Context, work *sync.WaitGroup, c ssh.NewChannel) {
	serve := map[string]func(context.Context, ssh.NewChannel){
		"session":                        s.session,
		"direct-tcpip":                   s.directTCP,
		"direct-streamlocal@openssh.com": s.directUnix,
	}[c.ChannelType()]
	if serve == nil {
		_ = c.Reject(ssh.UnknownChannelType, "not supported") // or the client has gone
		return
	}
	select {
	case s.slots <- struct{}{}:
	default:
		_ = c.Reject(ssh.ResourceShortage, fmt.Sprintf("%d are open already", maxChannels)) // the same
		return
	}
	work.Go(func() { // ends with its channel or with ctx
		defer func() { <-s.slots }()
		serve(ctx, c)
	})
}

// exec opens a stream for a command in the job.
func (s *server) exec(ctx context.Context) (*client.Stream, error) {
	return s.app.Client.Enter(ctx, api.StreamExec, s.host.Job, s.host.Rank)
}

// stdio is ssh at the other end of this process's standard streams.
type stdio struct {
	io.Reader
	io.Writer
}

// Close ends what waits for the streams, where they can be closed.
func (s *stdio) Close() error {
	for _, f := range []any{s.Reader, s.Writer} {
		if c, ok := f.(io.Closer); ok {
			c.Close()
		}
	}
	return nil
}
