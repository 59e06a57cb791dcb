package stdio

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"gbatch/oci/logs"
)

// Pump owns the ways between a container and its log: pipes, or the user's
// side of its terminal. The shim reads them, not the daemon, so that output goes
// on while the daemon is away, and not the container's processes themselves,
// so that the log stays bounded.
type Pump struct {
	ways     []*way
	input    *os.File // nil: nothing to read
	Terminal *os.File // the user's side of a terminal, once there is one
	// Receive gets that, and is set before Connect where there is one.
	Receive     func() (*os.File, error)
	hasTerminal bool
	log         io.Writer
	Hangs       bool // a file of the user's did so at the end
}

// way is one way to the log, and to a file of the user's.
type way struct {
	child *os.File // the container's end until it has started
	read  *os.File // nil until there is something to read from
	copy  *copier  // nil: there is no file
	done  chan error
}

// Log is a log with several writers.
type Log struct {
	mu sync.Mutex // guards all of it
	w  *logs.Writer
}

// OpenLog begins a log in a directory.
func OpenLog(dir string, limits logs.Limits) (*Log, error) {
	w, err := logs.NewWriter(dir, limits)
	if err != nil {
		return nil, err
	}
	return &Log{w: w}, nil
}

// LaterLog is a log that begins with the first output; see logs.NewLater.
func LaterLog(dir, room string, limits logs.Limits) *Log {
	return &Log{w: logs.NewLater(dir, room, limits)}
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// Close ends the log and says how much there was.
func (l *Log) Close() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.w.Close(); err != nil {
		fmt.Fprintln(os.Stderr, fmt.Errorf("close log: %w", err))
	}
	return l.w.Output
}

// Options are what a pump is made of.
type Options struct {
	Log      io.Writer // outlives the pump; several may write to it at once
	Terminal bool      // the process has one
	Files    Files
}

// NewPump makes way for the output, but for that of a terminal.
func NewPump(o Options) (*Pump, error) {
	p := &Pump{log: o.Log, input: o.Files.Input, hasTerminal: o.Terminal}
	out := p.way(o.Files.Output, "output")
	if o.Terminal {
		return p, nil
	}
	err := out.pipe(p.log)
	if err == nil && o.Files.Error != nil {
		err = p.way(o.Files.Error, "errors").pipe(p.log)
	}
	if err != nil {
		p.Finish()
		return nil, fmt.Errorf("make way for the output: %w", err)
	}
	return p, nil
}

// Terminals says whether the process is to have a terminal, which Receive gets.
func (p *Pump) Terminals() bool { return p.hasTerminal }

// Ends are the process's files, until Connect; nil: it has none.
func (p *Pump) Ends() (in, out, errs *os.File) {
	if p.hasTerminal {
		return nil, nil, nil
	}
	return p.input, p.ways[0].child, p.ways[len(p.ways)-1].child
}

// A terminal's size until somebody attaches.
const (
	DefaultWidth  = 80
	DefaultHeight = 24
)

func (p *Pump) way(file *os.File, what string) *way {
	w := &way{done: make(chan error, 1)}
	if file != nil {
		w.copy = newCopier(file, what, p.log)
	}
	p.ways = append(p.ways, w)
	return w
}

func (w *way) pipe(log io.Writer) (err error) {
	if w.read, w.child, err = os.Pipe(); err == nil {
		w.run(log)
	}
	return err
}

func (w *way) run(log io.Writer) {
	to := log
	if w.copy != nil {
		// The log first, and an error of it does not keep the file from being written.
		to = both{log, w.copy}
	}
	go func() { w.done <- logs.Pump(to, w.read) }() // Finish waits for it
}

// both writes to each of two, whatever the other says.
type both [2]io.Writer

func (b both) Write(p []byte) (int, error) {
	_, err := b[0].Write(p)
	_, err2 := b[1].Write(p)
	return len(p), errors.Join(err, err2)
}

// Children are the container's ends, until Connect.
func (p *Pump) Children() (files []*os.File) {
	for _, w := range p.ways {
		if w.child != nil {
			files = append(files, w.child)
		}
	}
	return files
}

// Connect is called once the container's set-up is over, which sends the
// terminal that it has made. Nothing of the user's has run.
func (p *Pump) Connect() error {
	for _, w := range p.ways {
		if w.child != nil {
			w.child.Close()
			w.child = nil
		}
	}
	if !p.hasTerminal {
		return nil
	}
	master, err := p.Receive()
	if err == nil {
		p.Terminal, err = Pollable(master)
	}
	if err != nil {
		return fmt.Errorf("open the container's terminal: %w", err)
	}
	p.ways[0].read = p.Terminal
	p.ways[0].run(p.log)
	return nil
}

// drainTimeout bounds the wait for output after the last process has ended.
// Only an end of the pipe that was passed to another container can take that long.
const drainTimeout = 5 * time.Second

// Finish waits until all output is in the log and in the files.
func (p *Pump) Finish() {
	for _, w := range p.ways {
		if w.child != nil {
			w.child.Close()
		}
	}
	for _, w := range p.ways {
		if err := p.drain(w); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

func (p *Pump) drain(w *way) (err error) {
	if w.read == nil {
		w.done <- nil // nothing was ever to be read
	} else {
		defer w.read.Close()
		err = w.read.SetReadDeadline(time.Now().Add(drainTimeout))
	}
	if w.copy == nil {
		return errors.Join(err, <-w.done)
	}
	ok, copyErr := w.copy.finish(w.done, copyTimeout)
	if !ok {
		p.Hangs = true
	}
	return errors.Join(err, copyErr)
}
