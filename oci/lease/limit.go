package lease

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/oci/atomicfile"
	"gbatch/oci/boot"
)

// Limit says for how long a container may run from its program's beginning. Its owner
// keeps it; a shim does where the owner is not there. To change it the owner puts a file
// with another one there, as a whole.
type Limit struct {
	RunMS   int64 `json:"runMs"`   // 0: none
	Signal  int   `json:"signal"`  // by which it is told to end
	GraceMS int64 `json:"graceMs"` // between that and its kill
}

const (
	// limitLate is what the owner has to see to a limit itself.
	limitLate = 5 * time.Second
	// limitLook is how soon a limit that was changed is noticed.
	limitLook = time.Minute
)

// KeepLimit ends a container that has just begun when its limit is over, which is the first unless
// the file is there: it calls stop with the limit's signal, and with SIGKILL after the grace and while
// that does not help, until done is closed.
func KeepLimit(file string, first Limit, done <-chan struct{}, stop func(syscall.Signal) error) {
	began, told := boot.Elapsed(), false
	last := lastLimit{file: file, limit: first}
	for {
		limit, err := last.read()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		wait := limitLook
		if limit.RunMS > 0 {
			var sig syscall.Signal
			sig, wait = limit.due(boot.Elapsed()-began-limitLate, told)
			if sig != 0 {
				told = true
				if err := stop(sig); err != nil {
					fmt.Fprintln(os.Stderr, "end a container whose time is over:", err)
				}
			}
		}
		if over(done, wait) {
			return
		}
	}
}

// lastLimit is the last limit that could be read, at first the one from before there was a file: the disk
// may damage the file while the container runs, and its time does not become another one by that.
type lastLimit struct {
	file  string
	limit Limit
	bad   bool
}

// read gives the limit to keep. The error is of the first reading in a row that failed.
func (l *lastLimit) read() (Limit, error) {
	now := Limit{}
	err := atomicfile.ReadJSON(l.file, &now)
	if err == nil {
		l.limit, l.bad = now, false
		return now, nil
	}
	if l.bad || errors.Is(err, fs.ErrNotExist) {
		return l.limit, nil
	}
	l.bad = true
	return l.limit, fmt.Errorf("time limit cannot be read; the one before it stays: %w", err)
}

// due is the signal for a container that has run for so long, 0 for none, and when to look
// again.
func (l Limit) due(ran time.Duration, told bool) (syscall.Signal, time.Duration) {
	term := time.Duration(l.RunMS) * time.Millisecond
	kill := term + time.Duration(l.GraceMS)*time.Millisecond
	switch {
	case ran >= kill:
		return unix.SIGKILL, retry
	case ran < term:
		return 0, min(term-ran, limitLook)
	case told:
		return 0, min(kill-ran, limitLook)
	}
	return syscall.Signal(l.Signal), min(kill-ran, limitLook)
}

// WallMS is by how many milliseconds the wall clock is ahead of the clock that runs from boot
// and through sleep. It changes when somebody sets the wall clock.
func WallMS() int64 { return time.Now().UnixMilli() - boot.Elapsed().Milliseconds() }
