package oci

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/oci/handed"
	"gbatch/oci/journal"
	"gbatch/oci/message"
)

// Kept is a container that goes on after its program, as its owner has it. One program
// runs at a time. Its methods are for one goroutine at a time, but Gone.
type Kept struct {
	cmd  *exec.Cmd
	feed *net.UnixConn // assignments go there; closing it ends the container after its program
	free chan struct{} // has something when the owner's program has ended and another may run
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
	book, err := journal.Create(dir)
	if err != nil {
		return nil, nil, err
	}
	defer book.Close() // from its start on the shim has it, and the lock
	cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", journal.Env, 3+len(cmd.ExtraFiles)))
	cmd.ExtraFiles = append(cmd.ExtraFiles, book)
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

// watch takes note when the owner's program has ended, and when the process has. How guests end they are told.
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
func (k *Kept) Free(c *Container) bool {
	if c.at.guest != "" {
		<-c.done
		c.mu.Lock()
		free := c.free
		c.mu.Unlock()
		if !free {
			<-k.gone
		}
		return free
	}
	select {
	case <-k.free:
		return true
	case <-k.gone:
		return false
	}
}

// Start begins a further program, which is in the container's journal. Free was called before
// and said yes.
func (k *Kept) Start(g Guest, spec *specs.Spec, cfg ShimConfig, h handed.Handover) (*Container, error) {
	c, err := k.start(g, spec, cfg, h)
	if err != nil {
		return nil, fmt.Errorf("start in kept container %s: %w", g.Name, err)
	}
	return c, nil
}

func (k *Kept) start(g Guest, spec *specs.Spec, cfg ShimConfig, h handed.Handover) (*Container, error) {
	if h.User != nil || h.Namespace != nil {
		return nil, errors.New("a kept container has its namespaces")
	}
	l, err := newLodger(g, spec, cfg)
	if err != nil {
		return nil, err
	}
	env, err := h.EnvFile()
	if err != nil {
		return nil, err
	}
	files := h.List()
	if env != nil {
		defer env.Close()
		files = append(files, env)
	}
	text, err := json.Marshal(assignment{Guest: l, Env: env != nil})
	if err != nil {
		return nil, err
	}
	if len(text) > message.MaxLine/2 {
		return nil, fmt.Errorf("%w for a program with arguments of this length", ErrGone)
	}
	ours, theirs, err := message.Pair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	if err := message.SendText(k.feed, text, append([]*os.File{theirs}, files...)...); err != nil {
		ours.Close()
		return nil, errors.Join(ErrGone, err)
	}
	return newContainer(place{dir: g.Dir, home: g.Home, guest: g.Name, ours: true}, ours, nil), nil
}

// Close ends the container once its program has ended.
func (k *Kept) Close() { k.feed.Close() }

// Gone is closed when the container has ended, and its shim has.
func (k *Kept) Gone() <-chan struct{} { return k.gone }
