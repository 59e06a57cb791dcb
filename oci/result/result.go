// Package result is how a container ended, as it is recorded in its directory, and the mark of
// its beginning.
package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"gbatch/oci/atomicfile"
	"gbatch/oci/failure"
	"gbatch/oci/lease"
)

// Exit is how a container ended. It is written once and never changes.
type Exit struct {
	Version int `json:"version"`
	// Code is the first process's exit code; 128+Signal when a signal ended
	// it; 125, 126 or 127 when the container could not start (see Failure).
	Code int `json:"code"`
	// Signal is the number of the signal that ended the first process, or 0.
	Signal int `json:"signal,omitempty"`
	// OOMKilled says that the memory limit killed a process of the container
	// and that the container failed. It comes from the kernel's counter, never
	// from the code 137, which a program or a user can cause too.
	OOMKilled bool `json:"oom_killed,omitempty"`
	// Part is the name of the program whose end this is, if it is not the container's own: one
	// of ShimConfig.Before, so that the container's own never began, or with Beside one of those.
	Part   string `json:"part,omitempty"`
	Beside bool   `json:"beside,omitempty"`
	// Stopped says that Kill or Stop ended the container, or kept it from starting.
	Stopped bool `json:"stopped,omitempty"`
	// LeaseOver says that it was ended because its lease had run out.
	LeaseOver bool `json:"lease_over,omitempty"`
	// LimitOver says that it was ended because its time limit was over, and nobody
	// else had ended it.
	LimitOver bool `json:"limit_over,omitempty"`
	// Lost says that the shim died: what the program returned is not known.
	Lost bool `json:"lost,omitempty"`
	// Failure is set when the container could not be started.
	Failure *failure.Failure `json:"failure,omitempty"`
	// Started is when the user's code began, zero if it never did.
	Started  time.Time `json:"started,omitzero"`
	Finished time.Time `json:"finished,omitzero"`
	// WallMS is lease.WallMS when this record was written.
	WallMS int64 `json:"wall_ms,omitempty"`

	CPUNanos  uint64 `json:"cpu_nanos"`
	PeakBytes uint64 `json:"peak_bytes"` // memory; 0 where the kernel does not keep it
	OOMKills  uint64 `json:"oom_kills"`  // processes that the memory limit killed
	// PidsDenied counts the forks that the limit of processes refused.
	PidsDenied uint64 `json:"pids_denied,omitempty"`
	LogBytes   int64  `json:"log_bytes"` // output written, whether kept or not
}

// Silent says that all is known of the container's output, and that there was none.
func (e Exit) Silent() bool { return e.LogBytes == 0 && !e.Lost }

// The files in a container's directory.
const (
	FileBegun = "begun"     // durable before the user's code runs; becomes FileExit
	FileExit  = "exit.json" // Exit, durable, written once
)

const exitVersion = 1

// Write records how the container of dir ended, once.
func Write(dir string, e Exit) error {
	data, err := json.Marshal(Stamp(e))
	if err != nil {
		return fmt.Errorf("record exit: %w", err)
	}
	if err := replaceMark(dir, atomicfile.Sum(data)); err != nil {
		return fmt.Errorf("record exit: %w", err)
	}
	return nil
}

// Stamp is an exit as it is written just now.
func Stamp(e Exit) *Exit {
	e.Version, e.WallMS = exitVersion, lease.WallMS()
	return &e
}

// Copy leaves an exit that is recorded elsewhere in a directory, too.
func Copy(dir string, e Exit) error {
	data, err := json.Marshal(e)
	if err == nil {
		err = atomicfile.Write(filepath.Join(dir, FileExit), atomicfile.Sum(data))
	}
	if err != nil {
		return fmt.Errorf("record exit: %w", err)
	}
	return nil
}

// exitReserve is the room that a container's mark keeps for the record of its exit.
const exitReserve = 4096

// WriteBegun marks that the user's code may have run. The mark has the size of an
// exit record, and becomes it: a job that fills the disk must not lose its own.
func WriteBegun(dir string) error {
	if err := atomicfile.WriteDurable(filepath.Join(dir, FileBegun), blank(exitReserve)); err != nil {
		return fmt.Errorf("record the start: %w", err)
	}
	return nil
}

func blank(n int) []byte { return bytes.Repeat([]byte{' '}, n) }

// roomAt is where in a mark the record goes: behind what is there.
func roomAt(mark []byte) int {
	end := max(0, atomicfile.EndOfPart(mark))
	return (end + exitReserve - 1) / exitReserve * exitReserve
}

// replaceMark turns the mark into the exit record, or writes one where there is
// no mark. The record is durable by the mark's name, which is: see Settle.
func replaceMark(dir string, data []byte) error {
	mark, record := filepath.Join(dir, FileBegun), filepath.Join(dir, FileExit)
	f, err := os.OpenFile(mark, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return atomicfile.WriteDurable(record, data)
	}
	if err != nil {
		return err
	}
	data = append(data, blank(max(0, exitReserve-len(data)))...)
	is, err := io.ReadAll(f)
	if err == nil {
		_, err = f.WriteAt(data, int64(roomAt(is)))
	}
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return atomicfile.Rename(mark, record)
}

// Settle is Read for a directory that nobody else has to do with: it gives a record its name where who
// wrote it died before, or the power was cut.
func Settle(dir string) (Exit, error) {
	mark := filepath.Join(dir, FileBegun)
	text, _ := os.ReadFile(mark) // what cannot be read has none
	if _, err := readExit(mark); err == nil && atomicfile.EndOfPart(text) >= 0 {
		if err := atomicfile.Rename(mark, filepath.Join(dir, FileExit)); err != nil {
			return Exit{}, err
		}
	}
	return Read(dir)
}

// Read returns how the container of dir ended. The error wraps
// os.ErrNotExist while there is no record of it.
func Read(dir string) (Exit, error) {
	e, err := readExit(filepath.Join(dir, FileExit))
	if err != nil {
		return Exit{}, fmt.Errorf("read exit of %s: %w", filepath.Base(dir), err)
	}
	return e, nil
}

func readExit(path string) (e Exit, err error) {
	data, err := atomicfile.ReadLast(path)
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(data, &e); err != nil || e.Version == 0 {
		return e, fmt.Errorf("%w: no record of an exit: %w", atomicfile.ErrDamaged, err)
	}
	return e, nil
}

// MayHaveBegun says whether the program of a container that is over may have run.
func MayHaveBegun(dir string) bool {
	for _, name := range []string{FileBegun, FileExit} {
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
			return true
		}
	}
	return false
}
