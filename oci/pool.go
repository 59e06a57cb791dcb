package oci

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"gbatch/oci/handed"
	"gbatch/oci/message"
	"gbatch/oci/stdio"
)

// Pool keeps shims whose container has ended for the next one. To execute a
// shim, and what it does for the first time, is a third of a start's cost, and
// one that goes on saves it. Each serves one container at a time, so a crash
// loses one at most. The zero value keeps none; it must not be copied.
type Pool struct {
	// Max is how many may wait for a container.
	Max int

	mu     sync.Mutex // guards what follows
	idle   []*worker
	closed bool
}

// worker is a shim's process as the pool that began it knows it.
type worker struct {
	cmd  *exec.Cmd
	feed *net.UnixConn // assignments go there; closing it ends the process after its container
	rest *time.Timer   // ends it if nothing is to be done for long
	gone chan struct{} // closed when it has died
}

// assignment is what a waiting shim is sent, with the lock of the container's
// directory, a connection to whoever called Start, and the namespaces that are
// handed over.
type assignment struct {
	Dir   string  `json:"dir,omitempty"`
	Guest *lodger `json:"guest,omitempty"` // instead, for a kept container
	Env   bool    `json:"env,omitempty"`   // the last file has Handover.Env
}

// idleTime is how long a shim waits for its next container.
const idleTime = 10 * time.Second

// Start begins a container in a directory that Prepare made, by a shim that waits or
// else by a new one, and does not wait for it. An error means that no shim runs there.
// The shim gets copies of the files of h; the caller closes its own.
func (p *Pool) Start(dir string, h handed.Handover) (*Container, error) {
	s, err := p.start(dir, h)
	if err != nil {
		return nil, fmt.Errorf("start container %s: %w", filepath.Base(dir), err)
	}
	return s, nil
}

// Waiting is how many shims wait for a container.
func (p *Pool) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}

// takes says whether a container may share a shim's process with others. One
// that is handed more than namespaces and files has that with the process.
func (p *Pool) takes(h handed.Handover) bool {
	h.User, h.Namespace, h.Stdio = nil, nil, stdio.Files{}
	return p.Max > 0 && reflect.ValueOf(h).IsZero()
}

// assign gives a container to a shim that waits. False means that none does.
func (p *Pool) assign(dir string, files ...*os.File) bool {
	for {
		p.mu.Lock()
		if len(p.idle) == 0 {
			p.mu.Unlock()
			return false
		}
		w := p.idle[len(p.idle)-1] // the one that rested least: the others may end
		p.idle = p.idle[:len(p.idle)-1]
		w.rest.Stop()
		p.mu.Unlock()
		if message.Send(w.feed, assignment{Dir: dir}, files...) == nil {
			return true
		}
		w.feed.Close() // it died while it waited
	}
}

// watch takes a shim back each time that it is free, until its process ends.
func (p *Pool) watch(w *worker) {
	free := make([]byte, 1)
	for {
		if n, _ := w.feed.Read(free); n == 0 {
			break
		}
		p.keep(w)
	}
	p.drop(w)
	_ = w.cmd.Wait() // its code says nothing
	close(w.gone)
}

func (p *Pool) keep(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) >= p.Max {
		w.feed.Close()
		return
	}
	w.rest = time.AfterFunc(idleTime, func() { p.drop(w) })
	p.idle = append(p.idle, w)
}

// drop ends a shim's process, after its container if it has one.
func (p *Pool) drop(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.idle, w); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
		_ = w.cmd.Process.Kill() // it may be stopped, and holds nothing
	}
	w.feed.Close()
}

// Close ends the shims that wait, and waits for that. Each of the others ends
// when its container has ended.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	for _, w := range idle {
		w.feed.Close()
		_ = w.cmd.Process.Kill() // it may be stopped, and holds nothing
	}
	p.mu.Unlock()
	for _, w := range idle {
		<-w.gone
	}
}
