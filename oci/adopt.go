package oci

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/oci/atomicfile"
	"gbatch/oci/door"
	"gbatch/oci/failure"
	"gbatch/oci/held"
	"gbatch/oci/result"
)

// State is what Adopt found in a directory.
type State string

// The states of a container's directory.
const (
	// StateNone: there is no such directory, or Prepare did not finish.
	StateNone State = "none"
	// StateReady: nothing of the user's ever ran; it is safe to start anew.
	StateReady State = "ready"
	// StateAlive: a shim lives and its container starts or runs.
	StateAlive State = "alive"
	// StateFinished: the result is there.
	StateFinished State = "finished"
	// StateLost: the shim died while the user's code ran. What was left of
	// the container has been killed and a result with Lost has been written.
	StateLost State = "lost"
)

// adoptTimeout bounds the wait for a shim that holds its lock but does not
// answer: it is about to open its socket, or about to end.
const adoptTimeout = 10 * time.Second

// Adopt finds out what became of the container in dir, whoever started it, and
// returns the shim if one lives. No other process may call it or Start for the
// same directory at the same time. It is safe to call any number of times.
func Adopt(dir string) (State, *Container, error) { return AdoptIn(dir, dir) }

// AdoptIn is Adopt for a program that an earlier version has in another directory's container,
// with files of its own.
func AdoptIn(dir, home string) (State, *Container, error) {
	return adopt(filepath.Base(dir), func() (State, *Container, error) { return adoptOnce(place{dir: dir, home: home}) })
}

func adopt(name string, once func() (State, *Container, error)) (State, *Container, error) {
	deadline := time.Now().Add(adoptTimeout)
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		state, shim, err := once()
		if err == nil {
			return state, shim, nil
		}
		if !errors.Is(err, errNoAnswer) || time.Now().After(deadline) {
			return state, nil, fmt.Errorf("adopt container %s: %w", name, err)
		}
		time.Sleep(wait)
	}
}

// errNoAnswer says that a shim is between two states.
var errNoAnswer = errors.New("its shim lives but does not answer")

func adoptOnce(at place) (State, *Container, error) {
	dir := at.dir
	if !slices.ContainsFunc([]string{fileShim, fileLock, result.FileBegun, result.FileExit}, func(name string) bool { return exists(filepath.Join(dir, name)) }) {
		return StateNone, nil, nil // any of them may be lost, and the container live
	}
	lock, err := held.Take(dir)
	if errors.Is(err, held.ErrHeld) {
		if waits(dir) {
			return StateAlive, nil, errNoAnswer // it is about to end
		}
		conn, err := door.Dial(at.home)
		if err == nil {
			return StateAlive, newContainer(at, conn, nil), nil
		}
		if errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, os.ErrNotExist) {
			return StateAlive, nil, errNoAnswer
		}
		return StateAlive, nil, err
	}
	if err != nil {
		return StateNone, nil, err
	}
	// Nobody can start a shim here until the lock is closed.
	defer lock.Close()
	return withoutShim(at)
}

// withoutShim says what became of the container of a directory that no shim has, and
// makes that so: what lives of it is ended, and a lost end is written down.
func withoutShim(at place) (State, *Container, error) {
	dir := at.dir
	exit, err := result.Settle(dir)
	if err == nil && exit.Lost {
		return StateLost, nil, nil
	}
	if err == nil {
		return StateFinished, nil, nil
	}
	damaged := errors.Is(err, atomicfile.ErrDamaged)
	if !damaged && !errors.Is(err, os.ErrNotExist) {
		return StateLost, nil, err
	}
	// The container outlives its shim, and its set-up may too.
	if err := killLeftovers(at.home); err != nil {
		return StateLost, nil, err
	}
	if !damaged && !exists(filepath.Join(dir, result.FileBegun)) {
		return StateReady, nil, nil
	}
	lost := lostExit(at.home, damaged)
	if st, err := os.Stat(filepath.Join(dir, result.FileBegun)); err == nil {
		lost.Started = st.ModTime()
	}
	if log, err := OpenLog(dir); err == nil {
		lost.LogBytes, _ = log.End()
	}
	if err := result.Write(dir, lost); err != nil {
		return StateLost, nil, err
	}
	return StateLost, nil, nil
}

// lostExit is the end of a program of which nobody knows how it ended.
func lostExit(home string, damaged bool) result.Exit {
	lost := result.Exit{Lost: true, Code: 128 + int(unix.SIGKILL), Signal: int(unix.SIGKILL), Finished: time.Now()}
	if damaged {
		lost.Failure = &failure.Failure{Kind: failure.RuntimeFailed, Message: "the record of how the container ended was damaged on the disk"}
	} else if text := held.Complaints(home); text != "" {
		lost.Failure = &failure.Failure{Kind: failure.RuntimeFailed, Message: "the container's shim died", Detail: text}
	}
	return lost
}

// killLeftovers ends every process of a container without a shim and removes its cgroup.
func killLeftovers(dir string) error {
	group, err := groupOf(dir)
	if err != nil || !group.Exists() {
		return err
	}
	return errors.Join(group.Kill(killTimeout), group.Remove())
}
