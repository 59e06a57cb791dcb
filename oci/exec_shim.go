package oci

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"gbatch/oci/draft"
	"gbatch/oci/failure"
	"gbatch/oci/message"
	"gbatch/oci/signals"
	"gbatch/oci/users"
	"gbatch/oci/wire"
)

// serveExec runs one further command in the container for the client of conn.
// The command ends with the connection: who asked for it has gone.
func (s *shim) serveExec(conn *net.UnixConn, in *message.Reader, req wire.Request, stdio []*os.File) {
	if !s.serving.TryAcquire(1) {
		message.CloseAll(stdio)
		_ = s.tell(conn, wire.Reply{Seq: req.Seq, Error: errEnded.Error()})
		return
	}
	defer s.serving.Release(1)
	within, err := within(s, req.Exec)
	var process process
	var terminal *os.File
	if err == nil {
		process, terminal, err = within.startExec(req.Exec, stdio)
	}
	message.CloseAll(stdio)
	if err != nil {
		out := wire.Reply{Seq: req.Seq, Error: err.Error()}
		if f, ok := errors.AsType[*failure.Failure](err); ok {
			out.Kind = f.Kind
		}
		_ = s.tell(conn, out)
		return
	}
	pid, _ := process.Pid()
	var files []*os.File
	if terminal != nil {
		files = append(files, terminal)
	}
	err = s.tell(conn, wire.Reply{Seq: req.Seq, PID: pid}, files...)
	message.CloseAll(files)
	if err != nil {
		_ = process.Signal(unix.SIGKILL)
	}
	ended := make(chan struct{})
	go within.watchExec(in, process, ended) // ends when the client goes or serveExec closes conn
	state, err := process.Wait()
	close(ended)
	out := wire.Reply{Seq: req.Seq, Exited: true}
	switch {
	case state == nil:
		out.Error = fmt.Sprintf("wait for the command: %v", err)
	case state.Sys().(syscall.WaitStatus).Signaled():
		out.Code = 128 + int(state.Sys().(syscall.WaitStatus).Signal())
	default:
		out.Code = state.ExitCode()
	}
	_ = s.tell(conn, out)
}

// within is who has the container in which a command is to run.
func within(s *shim, req *wire.ExecRequest) (*shim, error) {
	s.mu.Lock()
	several := s.several
	s.mu.Unlock()
	switch {
	case req == nil || several == nil && req.Part == "":
		return s, nil
	case several == nil:
		return nil, fmt.Errorf("no container %q runs in the job, nor any but its own", req.Part)
	}
	return several.named(req.Part)
}

// errEnded says that the container has ended meanwhile.
var errEnded = errors.New("the container has ended")

// watchExec forwards the client's signals and ends the command when it goes.
// What a command that has ended left behind stays, as with a login: it is part
// of the job.
func (s *shim) watchExec(in *message.Reader, process process, ended <-chan struct{}) {
	for {
		line, files, err := in.Next()
		message.CloseAll(files)
		var req wire.Request
		if err == nil {
			err = json.Unmarshal(line, &req)
		}
		select {
		case <-ended:
			return
		default:
		}
		if err != nil {
			s.box().hangUp(process)
			return
		}
		if req.Op == wire.OpSignal {
			_ = process.Signal(syscall.Signal(req.Signal))
		}
	}
}

// hangUpSession ends a command and what it started in its session.
func (s *shim) hangUpSession(process process) {
	if leader, err := process.Pid(); err == nil {
		signals.HangUp(leader, s.group.Pids)
	}
}

func (s *shim) tell(conn *net.UnixConn, out wire.Reply, files ...*os.File) error {
	out.Version = wire.Version
	s.mu.Lock() // a phase may be told on this connection at any time
	defer s.mu.Unlock()
	return message.Send(conn, out, files...)
}

// startExec starts the command, and returns the terminal's end for the client
// if it was to have one.
func (s *shim) startExec(req *wire.ExecRequest, stdio []*os.File) (process, *os.File, error) {
	if _, err := s.running(); err != nil {
		return nil, nil, err
	}
	if req == nil || len(req.Args) == 0 && !req.Program {
		return nil, nil, errors.New("no command to execute")
	}
	p, err := s.execProcess(req)
	if err != nil {
		return nil, nil, err
	}
	if req.Program && len(stdio) != 4 {
		return nil, nil, errors.New("the program to execute was not sent")
	}
	for _, f := range stdio {
		s.received.Give(f, p.User)
	}
	s.mu.Lock()
	c, root := s.container, s.now.root.At
	s.mu.Unlock()
	process, terminal, err := c.exec(p, req, stdio)
	if err != nil && !errors.Is(err, errEnded) {
		return nil, nil, failure.Of(err, failure.Start{Process: p, Rootfs: root})
	}
	return process, terminal, err
}

// rootOfFirst is the root of the first process. The file system itself is
// mounted for the container and its setup only.
func (s *shim) rootOfFirst() (string, error) {
	pid, err := s.running()
	return fmt.Sprintf("/proc/%d/root", pid), err
}

// resolveInside looks a user up in the running container.
func (s *shim) resolveInside(name string) (u users.User, err error) {
	root, err := s.box().root()
	if err != nil {
		return users.User{}, err
	}
	if !s.onThread(func() { u, err = users.Resolve(root, name, nil) }) {
		return users.User{}, errEnded
	}
	return u, err
}

// execProcess is the container's process with another command and, where the
// request says so, another user, directory and environment.
func (s *shim) execProcess(req *wire.ExecRequest) (*specs.Process, error) {
	s.mu.Lock()
	p := *s.spec.Process
	s.mu.Unlock()
	p.Args = req.Args
	if req.Program {
		p.Args = append([]string{sentProgram}, req.Args...)
	}
	p.Cwd = cmp.Or(req.WorkDir, p.Cwd)
	var err error
	if p.Env, err = draft.MergeEnv(p.Env, req.Env); err != nil {
		return nil, err
	}
	if req.User != "" {
		u, err := s.resolveInside(req.User)
		if err != nil {
			return nil, err
		}
		if p.User.UID != 0 && u.UID == 0 {
			return nil, errors.New("a container that runs as another user cannot be entered as root")
		}
		if p.User.UID != 0 && p.User.UID != u.UID && s.received.IDs.IsZero() {
			return nil, errors.New("a container whose ids are the node's cannot be entered as another user")
		}
		if err := users.Check(s.received.IDs, specs.User{UID: u.UID, GID: u.GID, AdditionalGids: u.Groups}); err != nil {
			return nil, err
		}
		p.Env = slices.DeleteFunc(p.Env, func(kv string) bool { return strings.HasPrefix(kv, "HOME=") })
		spec := &specs.Spec{Process: &p}
		users.Apply(spec, u)
	}
	return &p, nil
}

// sentProgram is the first file after standard error, as the command's setup sees
// it in the container. The file is the host's, so no link of the image leads there.
const sentProgram = "/proc/self/fd/3"
