package oci

import (
	"fmt"
	"gbatch/oci/logs"
	"os"
	"time"
)

// pump owns the way between a container and its log: a pipe, or the user's
// side of its terminal. The shim reads it, not the daemon, so that output goes
// on while the daemon is away, and not the container's processes themselves,
// so that the log stays bounded.
type pump struct {
	child    *os.File                 // the container's end until it has started; nil: it has a terminal
	receive  func() (*os.File, error) // the user's side of that, once it is made
	read     *os.File                 // nil until there is something to read from
	terminal *os.File                 // read, if that is a terminal
	log      *logs.Writer
	done     chan error
}

// newPump makes way for the output, but for that of a terminal.
func newPump(limits logs.Limits, terminal bool) (*pump, error) {
	w, err := logs.NewWriter(dirLog, limits)
	if err != nil {
		return nil, err
	}
	p := &pump{log: w, done: make(chan error, 1)}
	if terminal {
		return p, nil
	}
	if p.read, p.child, err = os.Pipe(); err != nil {
		w.Close()
		return nil, fmt.Errorf("make way for the output: %w", err)
	}
	p.run()
	return p, nil
}

// A terminal's size until somebody attaches.
const (
	defaultWidth  = 80
	defaultHeight = 24
)

func (p *pump) run() { go func() { p.done <- logs.Pump(p.log, p.read) }() } // finish waits for it

// connect is called once the container's set-up is over, which sends the
// terminal that it has made. Nothing of the user's has run.
func (p *pump) connect() error {
	if p.child != nil {
		p.child.Close()
		p.child = nil
		return nil
	}
	master, err := p.receive()
	if err == nil {
		p.terminal, err = pollable(master)
	}
	if err != nil {
		return fmt.Errorf("open the container's terminal: %w", err)
	}
	p.read = p.terminal
	p.run()
	return nil
}

// drainTimeout bounds the wait for output after the last process has ended.
// Only an end of the pipe that was passed to another container can take that long.
const drainTimeout = 5 * time.Second

// finish waits until all output is in the log and returns how much there was.
func (p *pump) finish() int64 {
	if p.child != nil {
		p.child.Close()
	}
	if p.read != nil {
		if err := p.read.SetReadDeadline(time.Now().Add(drainTimeout)); err != nil {
			fmt.Fprintln(os.Stderr, fmt.Errorf("bound the log's end: %w", err))
		}
		if err := <-p.done; err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		p.read.Close()
	}
	written := p.log.Written
	if err := p.log.Close(); err != nil {
		fmt.Fprintln(os.Stderr, fmt.Errorf("close log: %w", err))
	}
	return written
}
