package oci

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"gbatch/oci/handed"
	"gbatch/oci/message"
)

// Kept is a container that goes on after its program, as its owner has it. One program
// runs at a time. Its methods are for one goroutine at a time, but Gone.
type Kept struct {
	cmd  *exec.Cmd
	feed *net.UnixConn // assignments go there; closing it ends the container after its program
	free chan struct{} // has something when a program has ended and another may run
	gone chan struct{} // closed when the container has ended, and all that its shim had of it
}

// StartKept is Start for a container whose [ShimConfig] has Keep. Its shim is its own.
func (p *Pool) StartKept(dir string, h handed.Handover) (*Container, *Kept, error) {
	c, k, err := startKept(dir, h)
	if err != nil {
		return nil, nil, fmt.Errorf("start container %s: %w", filepath.Base(dir), err)
	}
	return c, k, nil
}

func startKept(dir string, h handed.Handover) (*Container, *Kept, error) {
	b, err := newBeginning(dir)
	if err != nil {
		return nil, nil, err
	}
	defer b.close()
	env, err := h.EnvFile()
	if err != nil {
		return nil, nil, err
	}
	cmd, err := b.command(h.List()...)
	if err != nil {
		return nil, nil, err
	}
	if env != nil {
		defer env.Close()
		cmd.Stdin = env
	}
	feed, err := beginFed(cmd)
	if err != nil {
		return nil, nil, err
	}
	k := &Kept{cmd: cmd, feed: feed, free: make(chan struct{}, 1), gone: make(chan struct{})}
	go k.watch() // ends with the process
	return b.container(nil), k, nil
}

// watch takes note each time that a program has ended, until the process has.
func (k *Kept) watch() {
	word := make([]byte, 1)
	for {
		if n, _ := k.feed.Read(word); n == 0 {
			break
		}
		k.free <- struct{}{} // Free takes it before another is started
	}
	k.feed.Close()
	_ = k.cmd.Wait() // its code says nothing
	close(k.gone)
}

// Free waits until the program has ended, and says whether another one may run.
func (k *Kept) Free() bool {
	select {
	case <-k.free:
		return true
	case <-k.gone:
		return false
	}
}

// Start begins a further program, in a directory that Prepare made for a guest. Free was
// called before and said yes.
func (k *Kept) Start(dir string, h handed.Handover) (*Container, error) {
	c, err := k.start(dir, h)
	if err != nil {
		return nil, fmt.Errorf("start in kept container %s: %w", filepath.Base(dir), err)
	}
	return c, nil
}

func (k *Kept) start(dir string, h handed.Handover) (*Container, error) {
	if h.User != nil || h.Namespace != nil {
		return nil, errors.New("a kept container has its namespaces")
	}
	b, err := newBeginning(dir)
	if err != nil {
		return nil, err
	}
	defer b.close()
	files := append([]*os.File{b.lock, b.theirs}, h.List()...)
	env, err := h.EnvFile()
	if err != nil {
		return nil, err
	}
	if env != nil {
		defer env.Close()
		files = append(files, env)
	}
	if err := message.Send(k.feed, assignment{Dir: dir, Env: env != nil}, files...); err != nil {
		return nil, errors.Join(ErrGone, err)
	}
	return b.container(nil), nil
}

// Close ends the container once its program has ended.
func (k *Kept) Close() { k.feed.Close() }

// Gone is closed when the container has ended, and its shim has.
func (k *Kept) Gone() <-chan struct{} { return k.gone }
