package oci

import (
	"fmt"
	"os"
	"time"
)

// pump owns the pipe between a container and its log. The shim reads it, not
// the daemon, so that output goes on while the daemon is away, and not the
// container's processes themselves, so that the log stays bounded.
type pump struct {
	write *os.File // the container's end; closed here once the container has it
	read  *os.File
	log   *logWriter
	done  chan error
}

func newPump(limits LogLimits) (*pump, error) {
	w, err := newLogWriter(dirLog, limits)
	if err != nil {
		return nil, err
	}
	r, wr, err := os.Pipe()
	if err != nil {
		w.Close()
		return nil, fmt.Errorf("make log pipe: %w", err)
	}
	p := &pump{write: wr, read: r, log: w, done: make(chan error, 1)}
	go func() { p.done <- pumpLog(w, r) }() // finish waits for it
	return p, nil
}

// drainTimeout bounds the wait for output after the last process has ended.
// Only an end of the pipe that was passed to another container can take that long.
const drainTimeout = 5 * time.Second

// finish waits until all output is in the log and returns how much there was.
func (p *pump) finish() int64 {
	if err := p.read.SetReadDeadline(time.Now().Add(drainTimeout)); err != nil {
		fmt.Fprintln(os.Stderr, fmt.Errorf("bound the log's end: %w", err))
	}
	if err := <-p.done; err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	p.read.Close()
	written := p.log.written
	if err := p.log.Close(); err != nil {
		fmt.Fprintln(os.Stderr, fmt.Errorf("close log: %w", err))
	}
	return written
}
