package rank

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/internal/job"
	"gbatch/oci/atomicfile"
)

// Stop is that a rank shall end, and why.
type Stop struct {
	Signal string        // as TERM
	Grace  time.Duration // between the signal and KILL
	Reason job.Reason
	Text   string
	Ahead  bool // only if it waits for its turn
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

// saveStop notes a stop before it is acted on. It need not survive a power
// cut: the rank would not either.
func saveStop(dir string, s stopRecord) error {
	b, err := json.Marshal(s)
	if err == nil {
		err = atomicfile.Write(filepath.Join(dir, fileStop), atomicfile.Sum(b))
	}
	if err != nil {
		return fmt.Errorf("note stop: %w", err)
	}
	return nil
}

// loadStop reads what saveStop wrote; nil if nothing.
func loadStop(dir string) (*stopRecord, error) {
	b, err := atomicfile.Read(filepath.Join(dir, fileStop))
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
