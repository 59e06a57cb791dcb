package noded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/internal/job"
	"gbatch/oci/atomicfile"
)

// stopRequest is that a rank shall end, and why.
type stopRequest struct {
	Signal string        // as TERM
	Grace  time.Duration // between the signal and KILL
	Reason job.Reason
	Text   string
}

// stopRecord is a stop under way. It is kept on disk, so that a daemon that is
// restarted in the middle goes on with it and knows the reason.
type stopRecord struct {
	Reason job.Reason `json:"reason"`
	Text   string     `json:"text,omitempty"`
	Signal string     `json:"signal"`
	KillMS int64      `json:"killMs"` // wall clock: KILL is due
	kill   time.Time  // the same, unmoved by clock steps while the daemon lives
	sent   bool       // the signal was delivered by this daemon
}

// maxGrace bounds the time a rank may take to end once it was asked to.
const maxGrace = 24 * time.Hour

// requestStop asks for the rank's end. The first reason stays; a later request
// can only bring the kill forward. Called with a.mu held.
func (r *rank) requestStop(s stopRequest) {
	if r.status.Exit != nil {
		return
	}
	kill := time.Now().Add(min(max(s.Grace, 0), maxGrace))
	switch {
	case r.stop == nil:
		r.stop = &stopRecord{Reason: s.Reason, Text: s.Text, Signal: s.Signal, KillMS: kill.UnixMilli(), kill: kill}
		r.log.Info("stopping rank", "reason", s.Reason, "text", s.Text, "grace", s.Grace)
	case kill.Before(r.stop.kill):
		r.stop.kill, r.stop.KillMS = kill, kill.UnixMilli()
	default:
		return
	}
	r.cancelStart(errStopped)
	r.poke()
}

// release says that the order is gone: end the rank if it runs, then forget
// it. Called with a.mu held.
func (r *rank) release() {
	if r.released {
		return
	}
	r.released = true
	grace := time.Duration(r.order.GraceMS) * time.Millisecond
	r.requestStop(stopRequest{Signal: "TERM", Grace: min(grace, orphanGrace), Reason: job.Server, Text: "the controller no longer wants this attempt"})
	r.poke()
}

// orphanGrace is what a rank that nobody wants any more gets at most: another
// attempt of its task may be about to start.
const orphanGrace = 10 * time.Second

// errStopped is the cause by which a stop breaks off the steps of a start.
var errStopped = errors.New("stopped before the start")

func (r *rank) stopPath() string { return filepath.Join(r.dir, "stop.json") }

// saveStop notes a stop before it is acted on. It need not survive a power
// cut: the rank would not either.
func (r *rank) saveStop(s stopRecord) error {
	b, err := json.Marshal(s)
	if err == nil {
		err = atomicfile.Write(r.stopPath(), b)
	}
	if err != nil {
		return fmt.Errorf("note stop of %s: %w", r.id, err)
	}
	return nil
}

// loadStop reads what saveStop wrote; nil if nothing.
func loadStop(dir string) (*stopRecord, error) {
	b, err := os.ReadFile(filepath.Join(dir, "stop.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read stop: %w", err)
	}
	var s stopRecord
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("read stop: %w", err)
	}
	s.kill = time.UnixMilli(s.KillMS)
	return &s, nil
}

// signalNumber reads TERM, SIGTERM or sigterm; anything unknown is TERM.
func signalNumber(name string) syscall.Signal {
	name = strings.ToUpper(name)
	if !strings.HasPrefix(name, "SIG") {
		name = "SIG" + name
	}
	if n := unix.SignalNum(name); n != 0 {
		return n
	}
	return unix.SIGTERM
}
