package oci

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"gbatch/oci/affinity"
	"gbatch/oci/held"
	"gbatch/oci/message"
	"gbatch/oci/spawn"
)

// A shim that a Pool began does not end with its container. It lets go of all
// that it had of it, as if it had died, and waits for the next one: one after
// the other, never two. After anything out of the ordinary it ends instead, so
// that nothing of one container can be there for another.

// feedEnv tells a shim the number of its end of worker.feed. Without it the
// shim ends with its first container.
const feedEnv = "_GBATCH_FEED"

// maxContainers is how many containers one shim serves at most, which bounds
// whatever may gather in a process.
const maxContainers = 200

// feed is where a shim hears of further containers.
type feed struct {
	conn   *net.UnixConn
	in     *message.Reader
	served int

	// As the process began.
	cores  unix.CPUSet
	limits map[int]unix.Rlimit
}

// openFeed returns nil if there is none.
func openFeed() *feed {
	fd, err := strconv.Atoi(os.Getenv(feedEnv))
	if err != nil {
		return nil
	}
	unix.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), "feed")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return nil
	}
	out := &feed{conn: conn, in: message.NewReader(conn), limits: spawn.Limits()}
	if unix.SchedGetaffinity(0, &out.cores) != nil {
		return nil
	}
	return out
}

// next ends a container's time in this process and waits for the next one. It
// returns nil if there is none, or if the process had better end.
func (f *feed) next(s *shim) *shim {
	if f == nil {
		return nil
	}
	if f.served++; f.served >= maxContainers || s.kept != nil || !s.plain() || !f.unchanged() {
		return nil
	}
	message.CloseAll(s.received.All)
	// From here on the container's directory is its owner's.
	s.lock.Close()
	if _, err := f.conn.Write([]byte{'\n'}); err != nil {
		return nil
	}
	if os.Chdir("/") != nil {
		return nil
	}
	s.dropClients()
	line, files, err := f.in.Next()
	if err != nil || len(files) < 2 {
		return nil
	}
	var a assignment
	if err := json.Unmarshal(line, &a); err != nil {
		return nil
	}
	if err := f.move(a.Dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return nil
	}
	out := newShimState(files[0], files[1])
	out.received.All = files[2:]
	return out
}

// nextGuest ends a program's time in a kept container and waits for the next one. It
// returns nil if there is none.
func (f *feed) nextGuest(s *shim) *shim {
	if f == nil {
		return nil
	}
	message.CloseAll(s.received.Stdio.All())
	if s.lodger == nil { // from here on what is about the first program alone is its owner's
		s.lock.Close()
		if _, err := f.conn.Write([]byte{'\n'}); err != nil { // of a guest its end says it
			return nil
		}
	}
	s.dropClients()
	line, files, err := f.in.Next()
	if err != nil || len(files) < 1 {
		message.CloseAll(files)
		return nil
	}
	var a assignment
	if err := json.Unmarshal(line, &a); err != nil || a.Guest == nil {
		message.CloseAll(files)
		return nil
	}
	out := newShimState(nil, files[0])
	if files = files[1:]; a.Env && len(files) > 0 {
		env := files[len(files)-1]
		err = unix.Dup3(int(env.Fd()), 0, 0) // where takeEnv reads it
		env.Close()
		files = files[:len(files)-1]
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		message.CloseAll(files)
		out.control.Close()
		return nil
	}
	k := s.kept
	out.received.All, out.lodger = files, a.Guest
	out.kept, out.container, out.group, out.v2, out.door, out.keeper = k, k.own, k.group, k.v2, k.door, k.keeper.Pid
	k.own.s = out
	return out
}

// unchanged makes the process what it was at its begin, and says whether it is.
func (f *feed) unchanged() bool {
	return spawn.Same(f.limits) && affinity.Threads(&f.cores) == nil
}

// enterDir makes dir the working directory of all threads. The container's, if that is who
// calls, has one of its own since it has mounts of its own.
func enterDir(dir string) error {
	others := make(chan error)
	go func() { others <- os.Chdir(dir) }()
	return errors.Join(os.Chdir(dir), <-others)
}

// move makes dir the process's own.
func (f *feed) move(dir string) error {
	if err := enterDir(dir); err != nil {
		return err
	}
	stderr, err := held.Complain(dir)
	if err != nil {
		return err
	}
	defer stderr.Close()
	for _, to := range []int{1, 2} {
		if err := unix.Dup3(int(stderr.Fd()), to, 0); err != nil {
			return fmt.Errorf("turn to %s: %w", stderr.Name(), err)
		}
	}
	return nil
}

// plain says that a container ran and ended by itself, and that nobody but its
// starter had to do with it.
func (s *shim) plain() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg.Runtime == nil && s.ran && s.visitors == 0 && !s.stopped && !s.leaseOver && s.terminal == nil && s.network.Plain()
}

// dropClients lets them see that the shim is done with their container.
func (s *shim) dropClients() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.conns {
		conn.Close()
	}
	if s.starter != nil {
		s.starter.Close() // it may not be among them yet
	}
}
