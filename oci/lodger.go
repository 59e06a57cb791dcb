package oci

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"gbatch/oci/atomicfile"
	"gbatch/oci/door"
	"gbatch/oci/held"
	"gbatch/oci/journal"
	"gbatch/oci/logs"
	"gbatch/oci/result"
)

// Guest is a program in a kept container that another directory has. What is durable of it is in the
// container's journal, where its owner notes a record of it before it begins.
type Guest struct {
	Name string // in the journal
	Home string // the directory of the container
	Dir  string // of its own: made when it has any output, for that
}

// lodger is what a shim is told of a guest. What is not said of it is its container's.
type lodger struct {
	Name    string         `json:"name"`
	Dir     string         `json:"dir"`
	Config  ShimConfig     `json:"config"`
	Process *specs.Process `json:"process"`
	CPUs    string         `json:"cpus,omitempty"`
}

func newLodger(g Guest, spec *specs.Spec, cfg ShimConfig) (*lodger, error) {
	if err := checkShimConfig(spec, cfg); err != nil {
		return nil, err
	}
	program := *spec.Process
	program.Capabilities, program.Rlimits = nil, nil
	l := &lodger{Name: g.Name, Dir: g.Dir, Config: cfg, Process: &program}
	l.Config.Layers = nil
	if r := spec.Linux.Resources; r != nil && r.CPU != nil {
		l.CPUs = r.CPU.Cpus
	}
	return l, nil
}

// AdoptGuest is Adopt for a guest.
func AdoptGuest(g Guest) (State, *Container, error) {
	return adopt(g.Name, func() (State, *Container, error) { return adoptGuest(g) })
}

func adoptGuest(g Guest) (State, *Container, error) {
	lock, err := journal.Take(g.Home)
	alive := errors.Is(err, held.ErrHeld)
	if errors.Is(err, os.ErrNotExist) {
		return StateNone, nil, nil
	}
	if err != nil && !alive {
		return StateNone, nil, err
	}
	if !alive {
		defer lock.Close() // nobody begins anything until then
	}
	is, err := journal.Find(g.Home, g.Name)
	damaged := errors.Is(err, atomicfile.ErrDamaged)
	switch {
	case errors.Is(err, os.ErrNotExist) && !damaged:
		return StateNone, nil, nil
	case err != nil && !damaged:
		return StateLost, nil, err
	case is != nil && is.Exit != nil && is.Exit.Lost:
		return StateLost, nil, nil
	case is != nil && is.Exit != nil:
		return StateFinished, nil, nil
	case alive:
		conn, err := door.Dial(g.Home)
		if errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, os.ErrNotExist) {
			err = errNoAnswer
		}
		if err != nil {
			return StateAlive, nil, err
		}
		return StateAlive, newContainer(place{dir: g.Dir, home: g.Home, guest: g.Name}, conn, nil), nil
	}
	// The container outlives its shim.
	if err := killLeftovers(g.Home); err != nil {
		return StateLost, nil, err
	}
	if !damaged && is.Begun.IsZero() {
		return StateReady, nil, nil
	}
	lost := lostExit(g.Home, damaged)
	if is != nil {
		lost.Started = is.Begun
	}
	lost.LogBytes, _ = OpenGuestLog(g.Dir, func() bool { return true }).End()
	return StateLost, nil, journal.Of(lock).Ended(g.Name, lost)
}

// guestExit is Container.Exit for a guest whose end its shim did not tell.
func guestExit(g Guest) (result.Exit, error) {
	if _, _, err := AdoptGuest(g); err != nil {
		return result.Exit{}, err
	}
	if is, err := journal.Find(g.Home, g.Name); is != nil && is.Exit != nil {
		return *is.Exit, nil
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return result.Exit{}, err
	}
	return result.Exit{}, fmt.Errorf("container %s: %w", g.Name, ErrNeverStarted)
}

// OpenGuestLog opens the log of a guest with this directory, which has none while there is no output.
func OpenGuestLog(dir string, ended func() bool) *logs.Log {
	return logs.OpenLater(filepath.Join(dir, dirLog), ended)
}
