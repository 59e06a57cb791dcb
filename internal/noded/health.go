package noded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/internal/noded/checks"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/preflight"
	"gbatch/internal/noded/program"
	"gbatch/internal/noded/reboot"
	"gbatch/oci/atomicfile"
)

// health is what keeps the node from taking jobs now. It concerns the machine
// only: no mistake in a job gets here.
type health struct {
	dir     string
	images  string // the image store's directory
	minFree int64
	own     []config.Program // of the site's
	reboots *reboot.Reboots  // set before anybody asks
	machine *checks.Watch    // that it is fit for jobs; set before anybody asks
	changed func()           // called when something of the below came or went; set before it can

	mu    sync.Mutex
	state error                 // the state directory cannot be written
	stuck map[job.RankID]string // ranks whose leftovers could not be removed
	fixed []string              // found at start, stays
	net   error                 // jobs' networks cannot be kept up
}

func newHealth(c *config.Config) *health {
	return &health{dir: c.StateDir, images: c.Images.Dir, minFree: int64(c.MinFree), own: c.Programs(), stuck: map[job.RankID]string{}}
}

// tryState notes whether the state directory takes writes, by the node's own
// evidence: what a job could not write may be its own doing.
func (h *health) tryState() {
	err := atomicfile.Write(filepath.Join(h.dir, fileTried), []byte("written\n"))
	h.note(func() { h.state = err })
}

// note changes what is noted. The controller is told of what came or went, so that no node takes
// jobs, or is kept from them, until it is heard of by the way.
func (h *health) note(change func()) {
	h.mu.Lock()
	state, net, stuck := h.state != nil, h.net != nil, maps.Clone(h.stuck)
	change()
	same := state == (h.state != nil) && net == (h.net != nil) && maps.Equal(stuck, h.stuck)
	h.mu.Unlock()
	if !same {
		h.changed()
	}
}

// tryEvery is how often that is done without a reason.
const tryEvery = 5 * time.Second

func (h *health) watch(ctx context.Context) {
	for client.Sleep(ctx, tryEvery) == nil {
		h.tryState()
	}
}

// fileTried is written to see whether it can be.
const fileTried = ".tried"

// networkError notes whether jobs' networks can be kept up and apart.
func (h *health) networkError(err error) {
	h.note(func() { h.net = err })
}

// DiskError has the state directory looked at if an error of a rank may be its
// fault.
func (h *health) DiskError(err error) {
	for _, e := range []error{unix.ENOSPC, unix.EDQUOT, unix.EROFS, unix.EIO} {
		if errors.Is(err, e) {
			h.tryState()
			return
		}
	}
}

// Leftover notes that what a rank had could not be removed; nil takes it back.
func (h *health) Leftover(id job.RankID, err error) {
	h.note(func() {
		if err == nil {
			delete(h.stuck, id)
			return
		}
		h.stuck[id] = fmt.Sprintf("cannot clean up after %s: %v", id, err)
	})
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
		list = append(list, fmt.Sprintf("%s cannot be written: %v", h.dir, h.state))
	}
	if h.net != nil {
		list = append(list, fmt.Sprintf("jobs' networks are not safe: %v", h.net))
	}
	for _, dir := range []string{h.dir, h.images} {
		if reason := preflight.DiskReason(dir, h.minFree); reason != "" {
			list = append(list, reason)
		}
	}
	if why := h.reboots.UnderWay(); why != "" {
		list = append(list, why)
	}
	list = append(list, h.machine.Reasons()...)
	for _, p := range h.own {
		if err := program.Check(p.Path); err != nil {
			list = append(list, "a program of the site's may not run: "+err.Error())
		}
	}
	for _, s := range h.stuck {
		list = append(list, s)
	}
	slices.Sort(list)
	return list
}
