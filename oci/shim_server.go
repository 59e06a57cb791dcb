package oci

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"gbatch/cgroups"
	"gbatch/oci/door"
	"gbatch/oci/message"
	"gbatch/oci/signals"
	"gbatch/oci/wire"
)

// serve opens the control socket, or has that of a kept container lead here, and answers on
// it and on the connection that the starter left us, until the process ends.
func (s *shim) serve() (err error) {
	visit := func(conn *net.UnixConn) { // who has come by the socket
		s.mu.Lock()
		s.visitors++
		s.mu.Unlock()
		go s.talk(conn) // ends with the connection, or the process
	}
	if s.door != nil {
		s.door.Turn(visit)
	} else if s.door, err = door.Open(visit); err != nil {
		return err
	}
	c, err := net.FileConn(s.control)
	s.control.Close()
	if conn, ok := c.(*net.UnixConn); err == nil && ok {
		s.starter = conn
		s.mu.Lock()
		s.conns[conn] = true // it hears of each phase from here on, and knows the first
		s.mu.Unlock()
		go func() { s.answerAll(conn); starterGone(s) }() // ends with the connection, or the process
	}
	return nil
}

// talk tells a client the phase, and answers it.
func (s *shim) talk(conn *net.UnixConn) {
	s.mu.Lock()
	s.conns[conn] = true
	err := message.Send(conn, s.phaseNow())
	s.mu.Unlock()
	if err != nil {
		s.forget(conn)
		return
	}
	s.answerAll(conn)
}

// answerAll answers one client.
func (s *shim) answerAll(conn *net.UnixConn) {
	defer s.forget(conn)
	in := message.NewReader(conn)
	for {
		line, files, err := in.Next()
		if err != nil {
			return
		}
		var req wire.Request
		if err := json.Unmarshal(line, &req); err != nil {
			message.CloseAll(files)
			return
		}
		if req.Op == wire.OpExec {
			s.serveExec(conn, in, req, files)
			return
		}
		if req.Op == wire.OpAnnex {
			if serveAnnex(s, conn, req, files) != nil {
				return
			}
			continue
		}
		message.CloseAll(files)
		serve := s.answer
		if req.Op == wire.OpAttach {
			serve = s.serveAttach
		}
		if err := serve(conn, req); err != nil {
			return
		}
	}
}

func (s *shim) forget(conn *net.UnixConn) {
	s.mu.Lock()
	delete(s.conns, conn)
	s.mu.Unlock()
	conn.Close()
}

func (s *shim) answer(conn *net.UnixConn, req wire.Request) error {
	if !s.serving.TryAcquire(1) {
		return errEnded
	}
	defer s.serving.Release(1)
	out := wire.Reply{Seq: req.Seq}
	if err := s.perform(req); err != nil {
		out.Error = err.Error()
	}
	return s.tell(conn, out)
}

func (s *shim) perform(req wire.Request) error {
	switch req.Op {
	case wire.OpKill:
		return s.stop(unix.SIGKILL)
	case wire.OpStop:
		return s.stop(syscall.Signal(req.Signal))
	case wire.OpSignal:
		return s.signal(syscall.Signal(req.Signal))
	case wire.OpBegin:
		return mayBegin(s)
	case wire.OpPause, wire.OpResume, wire.OpUpdate:
		return s.manage(req)
	default:
		return fmt.Errorf("this shim does not know the operation %q; it was started by an older version", req.Op)
	}
}

// errNotRunning answers what only makes sense for a running container.
var errNotRunning = errors.New("the container does not run")

func (s *shim) running() (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != wire.PhaseRunning || s.pid == 0 {
		return 0, errNotRunning
	}
	return s.pid, nil
}

// stop signals a container that runs and breaks off the start of one that
// does not run yet, so that no stop comes too early.
func (s *shim) stop(sig syscall.Signal) error {
	s.mu.Lock()
	s.stopped = true
	phase, first, several := s.phase, s.first, s.several
	late := s.ordering && sig != unix.SIGKILL
	if late {
		s.late = sig
	}
	s.mu.Unlock()
	switch {
	case phase == wire.PhaseExited, late:
		return nil
	case several != nil:
		return several.stop(sig)
	case phase == wire.PhaseStarting, phase == wire.PhaseMade:
		s.worded()
		return s.breakOff()
	case sig == unix.SIGKILL, s.deaf(sig):
		return endAll(s.group, first)
	default:
		return s.signal(sig)
	}
}

// endAll ends all processes of a container. The first one is in its control group unless somebody
// has moved it away; the kernel ends all others of its PID namespace with it.
func endAll(group *cgroups.Group, first process) error {
	err := group.Kill(killTimeout)
	if first != nil {
		_ = first.Signal(unix.SIGKILL) // an error: it has ended
	}
	return err
}

// deaf says that a signal which is to end the container would end nothing: the
// first process is alone and does not handle it, and the kernel keeps signals
// without a handler from a first process. Waiting for it would be in vain.
func (s *shim) deaf(sig syscall.Signal) bool {
	switch sig {
	case unix.SIGTERM, unix.SIGINT, unix.SIGQUIT, unix.SIGHUP:
	default:
		return false
	}
	if r := s.cfg.Runtime; r != nil && r.Kind.Sandboxed() {
		return false // what runs in there is not to be seen
	}
	pid, err := s.running()
	if err != nil {
		return false
	}
	pids, err := s.group.Pids()
	return err == nil && len(pids) == 1 && pids[0] == pid && !signals.Takes(pid, sig)
}

// breakOff ends what a start waits for, a hook or a mount that hangs. The
// start itself then sees that it was stopped.
func (s *shim) breakOff() error {
	s.mu.Lock()
	group := s.group
	s.mu.Unlock()
	if group == nil {
		return nil
	}
	return group.Kill(killTimeout)
}

func (s *shim) signal(sig syscall.Signal) error {
	if _, err := s.running(); err != nil {
		return err
	}
	return all(s).signal(sig)
}

// signalTree is signal where the container's processes are the host's.
func (s *shim) signalTree(sig syscall.Signal) error {
	pid, err := s.running()
	if err != nil {
		return err
	}
	return s.signalFrom(pid, sig)
}

// signalFrom signals the program with this number, or who below it is meant.
func (s *shim) signalFrom(pid int, sig syscall.Signal) error {
	pids, err := s.group.Pids()
	if err != nil {
		return err
	}
	pids = slices.DeleteFunc(pids, func(p int) bool { return p == s.keeper }) // signals are not for who begins programs
	if s.cfg.SignalFirst {
		pids = []int{pid}
	}
	return signals.Tree(pid, pids, sig)
}

func (s *shim) manage(req wire.Request) error {
	if _, err := s.running(); err != nil {
		return err
	}
	switch {
	case req.Op == wire.OpPause, req.Op == wire.OpResume:
		return all(s).stand(req.Op == wire.OpPause)
	case req.Limits == nil:
		return errors.New("no limits to set")
	}
	s.note(&s.changed)
	return s.update(*req.Limits)
}

// setPhase tells every client. A client that does not read is dropped.
func (s *shim) setPhase(p wire.Phase, pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setPhaseLocked(p, pid)
}

// phaseNow is what clients are told of the phase, with the lock held.
func (s *shim) phaseNow() wire.Reply {
	out := wire.Reply{Version: wire.Version, Phase: s.phase, PID: s.pid, Exit: s.end, Free: s.free}
	if !s.now.last {
		out.Part = s.now.Name
	}
	return out
}

func (s *shim) setPhaseLocked(p wire.Phase, pid int) {
	s.phase, s.pid = p, pid
	for conn := range s.conns {
		if message.Send(conn, s.phaseNow()) != nil {
			delete(s.conns, conn)
			conn.Close()
		}
	}
}
