// Package pod says in which order several programs that run at the same time begin and end,
// what the end of one means for the others, and when one begins again. It knows nothing of
// containers: whoever has programs begins and signals them, and tells of their ends.
package pod

import (
	"io"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Role is when a program runs.
type Role int

// The roles.
const (
	First   Role = iota // to its end before what follows begins
	Sidecar             // from its place among the first until all others have ended
	Own                 // the one that all is about
	Beside              // at the same time as it
)

// Program is one of them. All of its functions are called by Run, but Stop by anybody.
type Program struct {
	Name  string
	Role  Role
	Begin func() error // returns when it runs, or what was in the way
	Renew func() error // has it find its files as they were at first
	Drop  func()       // it begins no more
	Stop  func(syscall.Signal) error
	Text  func() string // how it ended last, for people

	runs     bool // guarded by Pod.mu
	code     int  // of its last end
	began    time.Time
	again    time.Time // when it begins again; zero: it does not
	restarts int
}

// Pod is all of them.
type Pod struct {
	Log          io.Writer
	FailTogether bool // the first that fails ends the others
	Signal       syscall.Signal
	Grace        time.Duration // from the signal that ends one until it is killed
	Stopped      func() bool   // whether all of it is to end
	Served       func()        // the own program has begun
	Calls        <-chan func() // what else Run's thread is to do

	ends chan ending
	wake chan struct{}

	mu     sync.Mutex // guards what follows
	all    []*Program // that have begun, in their order
	paused bool
	closes bool // no sidecar begins again
}

type ending struct {
	of    *Program
	taken func() int // takes the end in, and returns its code
}

// New makes one without programs.
func New() *Pod { return &Pod{ends: make(chan ending), wake: make(chan struct{}, 1)} }

// Ended tells that a program has ended. What is then to be done is done by Run's thread.
func (p *Pod) Ended(of *Program, taken func() int) { p.ends <- ending{of, taken} }

// Enter is called by Program.Begin when it is about to run, from where on it may hear of a
// stop. False means that all of it is to end, and it must not.
func (p *Pod) Enter(of *Program) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Stopped() { // who stops later finds it in the list
		return false
	}
	if !slices.Contains(p.all, of) {
		p.all = append(p.all, of)
	}
	return true
}

// SetRuns notes that a program runs, or is about to, or has ended.
func (p *Pod) SetRuns(of *Program, runs bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of.runs = runs
}

// Running are the programs that run, or are about to, in the order in which they began.
func (p *Pod) Running() (list []*Program) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.all {
		if one.runs {
			list = append(list, one)
		}
	}
	return list
}

// Stop ends the programs that are not there for others; sidecars follow these. Who calls has
// Stopped say so before.
func (p *Pod) Stop(sig syscall.Signal) (errs []error) {
	p.mu.Lock()
	all := slices.Clone(p.all)
	p.mu.Unlock()
	for _, one := range all {
		if sig == unix.SIGKILL || one.Role != Sidecar {
			errs = append(errs, one.Stop(sig))
		}
	}
	p.poke()
	return errs
}

// Pause has no sidecar begin again until it is called with false.
func (p *Pod) Pause(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = on
	p.poke()
}

func (p *Pod) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}
