package oci

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"gbatch/oci/draft"
	"gbatch/oci/failure"
	"gbatch/oci/pod"
	"gbatch/oci/result"
	"gbatch/oci/stage"
	"gbatch/oci/stdio"
	"gbatch/oci/users"
)

// A container may have several programs, each with a root file system of its own, that
// run one after the other: the spec's is the last of them. They have the group, the
// limits, the network, the ids and the log in common, and nothing of one lives when the
// next one begins: each is the first process of a process namespace of its own. For those
// that run at the same time see package pod.

// Part is a program of a container beside the spec's.
type Part struct {
	Name   string      `json:"name"` // for people
	Spec   *specs.Spec `json:"spec"`
	Layers []string    `json:"layers"` // of its image, lowest first

	Files    []File        `json:"files,omitempty"`
	MakeDirs []string      `json:"make_dirs,omitempty"`
	Below    []stage.Below `json:"below,omitempty"`

	// Stays is for one of ShimConfig.Before that goes on while what follows runs. It is
	// begun again when it ends, and ended when all others have.
	Stays bool `json:"stays,omitempty"`
	// MemoryBytes bounds its own memory, where it runs beside others; 0: they have one bound.
	MemoryBytes int64 `json:"memory_bytes,omitempty"`
}

// MaxParts bounds those before the spec's, and those beside it.
const MaxParts = 16

// part is a Part on its way.
type part struct {
	Part
	last   bool     // the spec's own
	beside bool     // one of ShimConfig.Beside
	pinned []string // where what it mounts of volumes is found
	root   stage.Root
	hooked []byte // the spec for hooks; nil: there are none
}

// takeParts makes the list, the spec's own as the last.
func (s *shim) takeParts() error {
	for i, p := range s.cfg.others() {
		s.parts = append(s.parts, &part{Part: p, beside: i >= len(s.cfg.Before), root: stage.Root{ID: partID(s.cfg.ID, i), At: fmt.Sprintf("%s.%d", stageRootfs, i)}})
	}
	own := Part{Spec: s.spec, Layers: s.cfg.Layers, Files: s.cfg.Files, MakeDirs: s.cfg.MakeDirs, Below: s.cfg.Below}
	s.now = &part{Part: own, last: true, root: stage.Root{ID: s.cfg.ID, At: stageRootfs}}
	s.parts = append(s.parts, s.now)
	if s.cfg.several() {
		s.whole = s.spec
	}
	for i, p := range s.parts {
		if s.whole != nil {
			p.ofPod(i)
		}
		if err := p.keepForHooks(); err != nil {
			return err
		}
	}
	return nil
}

// partID names what a part writes.
func partID(id string, i int) string { return fmt.Sprintf("%s+%d", id, i) }

// mount makes a part's root file system.
func (s *shim) mount(p *part, scratch string) error {
	uid, gid, _ := s.received.IDs.Host(0, 0)
	r := &p.root
	r.Scratch, r.Layers, r.User, r.UID, r.GID, r.MakeDirs, r.Files, r.Once = scratch, p.Layers, s.received.User, uid, gid, p.MakeDirs, p.Files, s.cfg.Once
	if err := r.Mount(); err != nil {
		return failure.OfRootfs(err)
	}
	if err := draft.ResolveUser(p.Spec, r.At); err != nil {
		return err
	}
	return users.Check(s.received.IDs, p.Spec.Process.User)
}

// named says of which part a failure is.
func (p *part) named(f *failure.Failure) *failure.Failure {
	if p.last {
		return f
	}
	out := *f
	out.Message = p.Name + ": " + f.Message
	return &out
}

// enter makes a part the one that the container is about.
func (s *shim) enter(p *part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now, s.spec = p, p.Spec
	s.pid, s.ended = 0, make(chan struct{})
}

// find finds what the part mounts of the container's volumes, once: others may write there.
func (p *part) find() error {
	if len(p.pinned) > 0 {
		return nil
	}
	for k, b := range p.Below {
		at := fmt.Sprintf("%s.below.%d", p.root.At, k)
		if err := b.Pin(at, p.root.UID, p.root.GID); err != nil {
			return err
		}
		p.pinned = append(p.pinned, at)
		for i, m := range p.Spec.Mounts {
			if m.Destination == filepath.Clean(b.Target) {
				p.Spec.Mounts[i].Source = at
			}
		}
	}
	return nil
}

// unpin undoes find.
func (p *part) unpin() (err error) {
	for _, at := range p.pinned {
		err = errors.Join(err, unix.Unmount(at, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW))
	}
	p.pinned = nil
	return err
}

// runParts runs one after the other. The first that does not succeed is the end.
func (s *shim) runParts() (exit result.Exit) {
	over := make(chan struct{})
	defer close(over)
	log, err := stdio.OpenLog(dirLog, s.cfg.Log)
	if err != nil {
		return s.failed(err)
	}
	for i, p := range s.parts {
		s.enter(p)
		if len(s.parts) > 1 {
			pod.Announce(log, p.Name, i+1, len(s.parts)-1)
		}
		status, err := s.runPart(p, log, over)
		if err != nil {
			exit = s.failed(err)
		} else {
			exit = exitOf(s, status)
		}
		if p.last || err != nil || exit.Code != 0 || exit.Stopped {
			break
		}
		complain(errors.Join(p.unpin(), p.drop())) // what is left goes with the container
	}
	if exit.Started = s.began; !s.now.last {
		exit.Part = s.now.Name
	}
	exit.LogBytes = log.Close()
	return exit
}

// drop removes what a part wrote.
func (p *part) drop() error {
	return errors.Join(p.root.Unmount(), stage.Remove(p.root.Scratch, p.root.ID))
}

// renew has a part find its image as it was at first.
func (p *part) renew() error {
	complain(p.drop())
	if err := os.Remove(p.root.At); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return p.root.Mount()
}

// complain tells the daemon, which finds it if the shim dies.
func complain(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// runPart starts a part and waits for its end.
func (s *shim) runPart(p *part, log *stdio.Log, over chan struct{}) (status syscall.WaitStatus, err error) {
	if err := errors.Join(p.find(), p.bundle(s)); err != nil {
		return 0, err
	}
	pump, process, err := s.start(log)
	if err != nil {
		return 0, err
	}
	err = awaitWord(s, process)
	now := time.Now()
	if err == nil {
		err = s.begin(process)
	}
	if err != nil {
		pump.Finish()
		return 0, err
	}
	if s.began.IsZero() {
		s.began = now
		s.keep(over)
	}
	if p.last {
		s.network.Serve()
	}
	status, err = s.await(process)
	s.annexes.End(complain)
	if p.last {
		s.network.Close() // the ports are free before anybody hears of the end
	}
	s.dropTerminal()
	pump.Finish()
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	s.pid = 0                                          // until the next one runs
	s.ran = p.last && !pump.Hangs && len(s.parts) == 1 // a process with a thread that hangs serves no further container
	s.mu.Unlock()
	return status, nil
}
