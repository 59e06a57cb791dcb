package noded

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"gbatch/internal/job"
	"gbatch/internal/noded/config"
)

// health is what keeps the node from taking jobs now. It concerns the machine
// only: no mistake in a job gets here.
type health struct {
	dir     string
	images  string // the image store's directory
	minFree int64

	mu    sync.Mutex
	state error                 // the state directory cannot be written
	stuck map[job.RankID]string // ranks whose leftovers could not be removed
	fixed []string              // found at start, stays
	net   error                 // jobs' networks cannot be kept up
}

func newHealth(c *config.Config) *health {
	return &health{dir: c.StateDir, images: c.Images.Dir, minFree: int64(c.MinFree), stuck: map[job.RankID]string{}}
}

// stateError notes whether the state directory takes writes.
func (h *health) stateError(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state = err
}

// networkError notes whether jobs' networks can be kept up and apart.
func (h *health) networkError(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.net = err
}

// diskError notes an error of a start if it says that the state directory does
// not take writes. The next write that works takes it back.
func (h *health) diskError(err error) {
	for _, e := range []error{unix.ENOSPC, unix.EDQUOT, unix.EROFS, unix.EIO} {
		if errors.Is(err, e) {
			h.stateError(e)
		}
	}
}

// leftover notes that what a rank had could not be removed; nil takes it back.
func (h *health) leftover(id job.RankID, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		delete(h.stuck, id)
		return
	}
	h.stuck[id] = fmt.Sprintf("cannot clean up after %s: %v", id, err)
}

// lacks notes what the machine lacks for as long as the daemon runs.
func (h *health) lacks(reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fixed = append(h.fixed, reason)
}

// reasons lists why no jobs should be sent here now, sorted; none: all is well.
func (h *health) reasons() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := slices.Clone(h.fixed)
	if h.state != nil {
		list = append(list, fmt.Sprintf("state directory %s cannot be written: %v", h.dir, h.state))
	}
	if h.net != nil {
		list = append(list, fmt.Sprintf("jobs' networks are not safe: %v", h.net))
	}
	for _, dir := range []string{h.dir, h.images} {
		if reason := diskReason(dir, h.minFree); reason != "" {
			list = append(list, reason)
		}
	}
	for _, s := range h.stuck {
		list = append(list, s)
	}
	slices.Sort(list)
	return list
}

// diskReason says what is wrong with the file system of one of our directories.
func diskReason(dir string, minFree int64) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Sprintf("directory %s cannot be read: %v", dir, err)
	}
	if st.Flags&unix.ST_RDONLY != 0 {
		return fmt.Sprintf("directory %s is on a read-only file system", dir)
	}
	if free := int64(st.Bavail) * st.Bsize; free < minFree {
		return fmt.Sprintf("disk full: %s left below %s, at least %s must be free", config.FormatBytes(free), dir, config.FormatBytes(minFree))
	}
	if st.Files > 0 && st.Ffree < minInodes {
		return fmt.Sprintf("disk full: %d inodes left below %s", st.Ffree, dir)
	}
	return ""
}

// minInodes is what unpacking a usual image and a few containers may need.
const minInodes = 10_000
