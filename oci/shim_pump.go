package oci

import (
	"fmt"
	"gbatch/oci/logs"
	"os"
	"time"

	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/utils"
)

// pump owns the way between a container and its log: a pipe, or the user's
// side of its terminal. The shim reads it, not the daemon, so that output goes
// on while the daemon is away, and not the container's processes themselves,
// so that the log stays bounded.
type pump struct {
	child    *os.File // the container's end until it has started
	console  *os.File // where its terminal comes from; nil: it has none
	read     *os.File // nil until there is something to read from
	terminal *os.File // read, if that is a terminal
	log      *logs.Writer
	done     chan error
}

// newPump gives the process its output, or its terminal.
func newPump(limits logs.Limits, process *libcontainer.Process, terminal bool) (*pump, error) {
	w, err := logs.NewWriter(dirLog, limits)
	if err != nil {
		return nil, err
	}
	p := &pump{log: w, done: make(chan error, 1)}
	if terminal {
		p.console, p.child, err = utils.NewSockPair("console")
		process.ConsoleSocket = p.child
		process.ConsoleWidth, process.ConsoleHeight = defaultWidth, defaultHeight
	} else {
		p.read, p.child, err = os.Pipe()
		process.Stdout, process.Stderr = p.child, p.child
	}
	if err != nil {
		w.Close()
		return nil, fmt.Errorf("make way for the output: %w", err)
	}
	if p.read != nil {
		p.run()
	}
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
	p.child.Close()
	p.child = nil
	if p.console == nil {
		return nil
	}
	master, err := utils.RecvFile(p.console)
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
	for _, f := range []*os.File{p.child, p.console} {
		if f != nil {
			f.Close()
		}
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
