package exec

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/attach"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/watch"
)

// maxForwarded bounds the connections that one gexec forwards at once; others
// wait to be accepted.
const maxForwarded = 64

// acceptPause is kept when connections cannot be accepted for want of something.
const acceptPause = 500 * time.Millisecond

// forward is one --forward: connections to listen go to port of the job.
type forward struct {
	listen string
	port   uint16
}

// parseForward reads [BIND:]LOCAL:REMOTE, or PORT for PORT:PORT.
func parseForward(text string) (forward, error) {
	bad := func(why string) (forward, error) {
		return forward{}, exit.Usagef("--forward %s: %s; want [ADDRESS:]LOCALPORT:JOBPORT, as 8080:80", text, why)
	}
	bind, ports := "127.0.0.1", text
	if rest, ok := strings.CutPrefix(text, "["); ok {
		if bind, ports, ok = strings.Cut(rest, "]:"); !ok {
			return bad("the address has no end")
		}
	} else if parts := strings.Split(text, ":"); len(parts) == 3 {
		bind, ports = parts[0], parts[1]+":"+parts[2]
	}
	local, remote, ok := strings.Cut(ports, ":")
	if !ok {
		remote = local
	}
	from, err := strconv.ParseUint(local, 10, 16)
	if err != nil {
		return bad(fmt.Sprintf("%q is no port", local))
	}
	to, err := strconv.ParseUint(remote, 10, 16)
	if err != nil || to == 0 {
		return bad(fmt.Sprintf("%q is no port of a job", remote))
	}
	if bind == "*" {
		bind = ""
	}
	return forward{net.JoinHostPort(bind, strconv.FormatUint(from, 10)), uint16(to)}, nil
}

// forwardPorts listens here and joins each connection with a port of a running job,
// until the job has ended or the user stops it.
func forwardPorts(ctx context.Context, a *cli.App, id string, rank int, specs []string) error {
	var forwards []forward
	for _, text := range specs {
		f, err := parseForward(text)
		if err != nil {
			return err
		}
		forwards = append(forwards, f)
	}
	st, err := a.Client.Enter(ctx, api.StreamForward, id, rank) // whether we may, before anybody connects
	if err != nil {
		return err
	}
	st.Close()
	ctx, cancel := context.WithCancel(ctx)
	var conns sync.WaitGroup
	defer conns.Wait()
	defer cancel()
	t := &tunnel{app: a, id: id, rank: rank, slots: make(chan struct{}, maxForwarded)}
	here := map[uint16]net.Addr{}
	for _, f := range forwards {
		l, err := net.Listen("tcp", f.listen)
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("listen on %s: the port is in use here; choose another, as %d:%d", f.listen, 10000+int(f.port)%10000, f.port)
		}
		if err != nil {
			return fmt.Errorf("listen for --forward: %w", err)
		}
		context.AfterFunc(ctx, func() { l.Close() })
		a.Say("forwarding %s to port %d of job %s", l.Addr(), f.port, id)
		here[f.port] = l.Addr()
		conns.Go(func() { t.serve(ctx, l, f.port) }) // ends with ctx, and so do its connections
	}
	conns.Go(func() { t.sayURLs(ctx, here) }) // the same
	d, err := watch.Job(ctx, a, id, func(*api.JobDetail) bool { return false })
	if ctx.Err() != nil {
		return &exit.Error{Code: exit.Interrupted}
	}
	if err != nil {
		return err
	}
	a.Say("%s", jobs.Outcome(d))
	return nil
}

// tunnel is where connections go.
type tunnel struct {
	app   *cli.App
	id    string
	rank  int
	slots chan struct{}

	mu   sync.Mutex
	said string // the last complaint, which is not repeated
}

func (t *tunnel) serve(ctx context.Context, l net.Listener, port uint16) {
	var conns sync.WaitGroup
	defer conns.Wait()
	for {
		select {
		case t.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		conn, err := l.Accept()
		if err != nil {
			<-t.slots
			if ctx.Err() != nil {
				return
			}
			t.complain(fmt.Sprintf("accept a connection: %v", err))
			if t.app.Sleep(ctx, acceptPause) != nil { // no descriptors, perhaps for a moment
				return
			}
			continue
		}
		conns.Go(func() { // ends with the connection
			defer func() { <-t.slots }()
			t.forward(ctx, conn.(*net.TCPConn), port)
		})
	}
}

func (t *tunnel) complain(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text != t.said {
		t.app.Say("%s", text)
	}
	t.said = text
}

// forward joins one connection with the job's port.
func (t *tunnel) forward(ctx context.Context, conn *net.TCPConn, port uint16) {
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	st, err := t.app.Client.Enter(ctx, api.StreamForward, t.id, t.rank)
	if err == nil {
		defer st.Close()
		err = st.Send(ctx, api.JSONFrame(api.FrameStart, api.ForwardStart{Port: port}))
	}
	if err == nil {
		if err = st.Join(ctx, conn); err != nil && !isFailure(err) {
			err = attach.Broken(ctx, attach.Ended)
		}
	}
	if err != nil {
		_ = conn.SetLinger(0) // its user shall see that it failed
		if ctx.Err() == nil {
			t.complain(err.Error())
		}
	}
}

// isFailure says that the node told why.
func isFailure(err error) bool {
	_, ok := errors.AsType[*api.StreamFailure](err)
	return ok
}
