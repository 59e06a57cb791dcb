package stdio

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// copier writes to a file of the user's what the log gets. A file server that
// is slow holds the program up, as it does where the program writes itself; one
// that hangs does not keep the container from ending.
type copier struct {
	in   chan []byte
	gone chan struct{} // closed when nobody waits any more
	done chan error    // one value, when all is written
}

// copyAhead is how many pieces of output, of 64 KiB at most, may wait for the file.
const copyAhead = 16

// copyTimeout bounds the wait for the file after the container's end.
const copyTimeout = 30 * time.Second

// newCopier begins to copy. It says in the log, once, that the file takes no more.
func newCopier(f *os.File, what string, log io.Writer) *copier {
	c := &copier{in: make(chan []byte, copyAhead), gone: make(chan struct{}), done: make(chan error, 1)}
	go func() { // ends with in, and is awaited by finish unless the file hangs
		// For good: the thread ends with it. Root need not keep to a quota
		// and its reserve is not the user's.
		runtime.LockOSThread()
		err := dropCapabilities()
		for p := range c.in {
			if err == nil {
				if _, err = f.Write(p); err != nil {
					fmt.Fprintf(log, "gbatch: cannot write the %s to its file any more (%v); all of it is here\n", what, reasonOf(err))
				}
			}
		}
		c.done <- err
	}()
	return c
}

// Write never fails: what a file does not take is in the log all the same.
func (c *copier) Write(p []byte) (int, error) {
	select {
	case c.in <- append([]byte(nil), p...):
	case <-c.gone:
	}
	return len(p), nil
}

// finish waits until all is written. False means that the file hangs. No more
// may be written by then, or is lost.
func (c *copier) finish(writers <-chan error, wait time.Duration) (ok bool, err error) {
	late := time.NewTimer(wait)
	defer late.Stop()
	select {
	case err = <-writers:
	case <-late.C:
		close(c.gone)
		return false, <-writers
	}
	close(c.in)
	select {
	case <-c.done:
		return true, err
	case <-late.C:
		return false, err
	}
}

// dropCapabilities leaves this thread none in effect.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if err := unix.Capget(&header, &caps[0]); err != nil {
		return os.NewSyscallError("capget", err)
	}
	caps[0].Effective, caps[1].Effective = 0, 0
	return os.NewSyscallError("capset", unix.Capset(&header, &caps[0]))
}

// reasonOf is an error without the name that a file has here.
func reasonOf(err error) error {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return pe.Err
	}
	return err
}
