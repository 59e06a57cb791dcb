// Package hooks runs the site's own programs around jobs: the prolog before a
// rank's container begins, the epilog when it has ended and before what it had is
// given to others. Whose prolog has begun gets an epilog, over restarts of the
// daemon: a program that was under way is run again, one that has ended is not.
//
// It owns the directory of its records and the control groups of its programs. It
// knows nothing of containers: ranks tell it when they begin and end.
package hooks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"gbatch/cgroups"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/program"
	"gbatch/internal/noded/reason"
)

// Options are what hooks need of the node.
type Options struct {
	Dir            string // of the records
	Boot           string // of the machine
	Prolog, Epilog []config.Program
	Cgroups        cgroups.Host
	Prefix         string            // of the node's control groups
	Fault          func(text string) // has the node drained; it is durable on return
	Ran            func(kind, result string, took time.Duration)
	Reached        func(point string) // marks a point at which tests kill the daemon
	Log            *slog.Logger
}

// Hooks are those of one node.
type Hooks struct {
	Options

	mu      sync.Mutex
	records map[job.RankID]record
	late    map[job.RankID]bool // whose epilog is run though there is no rank
}

// Rank is whose programs are run. Facts are the environment that says so.
type Rank struct {
	ID    job.RankID
	UUID  string
	Facts func() []string
}

// Open reads what an earlier daemon noted.
func Open(o Options) (*Hooks, error) {
	h := &Hooks{Options: o, records: map[job.RankID]record{}, late: map[job.RankID]bool{}}
	return h, h.load()
}

// Group says whether a control group is of a program that may live on: of what a
// prolog has left for its job.
func (h *Hooks) Group(path string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, r := range h.records {
		if path == h.groupPath(id, kindProlog) {
			return r.Stage == inJob && r.Boot == h.Boot
		}
	}
	return false
}

const (
	kindProlog = "prolog"
	kindEpilog = "epilog"
)

func (h *Hooks) groupPath(id job.RankID, kind string) string {
	return path.Join(h.Prefix, kind+"-"+id.String())
}

// Before runs the prolog of a rank, unless it has passed. An error ends the rank's
// start; where the prolog is to blame, the node is to be drained.
func (h *Hooks) Before(ctx context.Context, r Rank) error {
	if len(h.Prolog) == 0 {
		return nil
	}
	rec, ok := h.of(r.ID, r.UUID)
	if ok && rec.Stage == inJob && rec.Boot == h.Boot {
		return nil
	}
	rec = record{ID: r.ID, UUID: r.UUID, Stage: inProlog, Boot: h.Boot, Facts: r.Facts()}
	if err := h.put(rec); err != nil {
		return err
	}
	h.Reached("prolog noted")
	for _, p := range h.Prolog {
		err := h.run(ctx, kindProlog, rec, p, role("prolog_slurmd"))
		if failed := (*program.Failure)(nil); errors.As(err, &failed) {
			text := fmt.Sprintf("prolog %s failed before job %d: %v", p.Path, r.ID.Job, failed)
			h.Fault(text)
			return reason.Errorf(job.Prolog, "%s; the node takes no more jobs until an operator has looked at it", text)
		}
		if err != nil {
			return err
		}
	}
	h.Reached("prolog passed")
	rec.Stage = inJob
	return h.put(rec)
}

// After runs the epilog of a rank that is over, unless it has ended. False means
// that ctx ended first: the next daemon runs it again. What exit says is then told
// by Ended.
func (h *Hooks) After(ctx context.Context, r Rank, exit *node.Exit) bool {
	rec, ok := h.of(r.ID, r.UUID)
	switch {
	case ok && rec.Stage == isOver:
		return true
	case !ok && (len(h.Epilog) == 0 || exit.StartedMS == 0):
		return true // nothing was done for it, or nothing shall be
	case !ok:
		rec = record{ID: r.ID, UUID: r.UUID, Boot: h.Boot, Facts: r.Facts()}
	}
	if rec.Stage != inEpilog {
		rec.Stage, rec.Exit = inEpilog, exit
		if err := h.put(rec); err != nil {
			h.Log.Error("a restart of the daemon could run an epilog without the job's end", "rank", r.ID, "error", err)
		}
	}
	h.Reached("epilog noted")
	return h.epilog(ctx, rec)
}

// epilog runs all its programs, also if one fails: each cleans up something else.
func (h *Hooks) epilog(ctx context.Context, rec record) bool {
	for _, p := range h.Epilog {
		err := h.run(ctx, kindEpilog, rec, p, append(endFacts(rec.Exit), role("epilog_slurmd")...))
		if failed := (*program.Failure)(nil); errors.As(err, &failed) {
			h.Fault(fmt.Sprintf("epilog %s failed after job %d: %v", p.Path, rec.ID.Job, failed))
			continue
		}
		if err != nil {
			return false
		}
	}
	h.Reached("epilog ended")
	for _, kind := range []string{kindProlog, kindEpilog} {
		if err := h.sweep(rec.ID, kind); err != nil {
			h.Fault(fmt.Sprintf("what the %s of job %d left running does not end: %v", kind, rec.ID.Job, err))
		}
	}
	rec.Stage = isOver
	if err := h.put(rec); err != nil {
		h.Log.Error("a restart of the daemon could run an epilog again", "rank", rec.ID, "error", err)
	}
	h.Reached("epilog over")
	return true
}

// run runs one program.
func (h *Hooks) run(ctx context.Context, kind string, rec record, p config.Program, more []string) error {
	group, err := h.Cgroups.Find(h.groupPath(rec.ID, kind))
	if err != nil {
		return err
	}
	began := time.Now()
	out, err := program.Run{Path: p.Path, Env: append(append(Environment(), rec.Facts...), more...), Limit: time.Duration(p.Timeout), Group: group}.Do(ctx)
	took := time.Since(began)
	log := h.Log.With("program", p.Path, "rank", rec.ID, "took", took.Round(time.Millisecond), "output", strings.TrimSpace(out))
	switch {
	case err == nil && strings.TrimSpace(out) == "":
		log.Debug(kind + " passed")
	case err == nil:
		log.Info(kind + " passed")
	case ctx.Err() != nil:
		log.Warn(kind+" broken off", "cause", err)
		return err
	default:
		log.Error(kind+" failed", "error", err)
	}
	result := "ok"
	if err != nil {
		result = "failed"
	}
	h.Ran(kind, result, took)
	return err
}

// Environment is what that of all of the site's programs begins with.
func Environment() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "USER=root", "LOGNAME=root", "SHELL=/bin/sh"}
}

// sweep ends what a program left running.
func (h *Hooks) sweep(id job.RankID, kind string) error {
	g, err := h.Cgroups.Find(h.groupPath(id, kind))
	if err != nil || !g.Exists() {
		return err
	}
	return errors.Join(g.Kill(killTimeout), g.Remove())
}

const killTimeout = 10 * time.Second

// Ended is how a rank ended that the controller may order again, as the daemon was
// killed before it could tell; nil: it did not.
func (h *Hooks) Ended(id job.RankID, uuid string) *node.Exit {
	r, ok := h.of(id, uuid)
	if !ok || r.Exit == nil {
		return nil
	}
	exit := *r.Exit
	return &exit
}

// Due says whether the epilog of a rank that is over has yet to be run.
func (h *Hooks) Due(id job.RankID, uuid string, exit *node.Exit) bool {
	r, ok := h.of(id, uuid)
	if !ok {
		return len(h.Epilog) > 0 && exit.StartedMS > 0
	}
	return r.Stage != isOver
}

// Forget removes the record of a rank that is told and gone. One of which nothing
// ran after its prolog has yet to have its epilog: see Left.
func (h *Hooks) Forget(id job.RankID) {
	h.mu.Lock()
	ok := h.records[id].Stage == isOver
	if ok {
		delete(h.records, id)
	}
	delete(h.late, id)
	h.mu.Unlock()
	if ok {
		if err := os.Remove(h.file(id)); err != nil && !errors.Is(err, os.ErrNotExist) {
			h.Log.Error("remove record of a prolog", "rank", id, "error", err)
		}
	}
}

// Left are the ranks of records for which there is none: nothing of them ran, as
// the daemon went before, and the controller does not want them any more. They are
// Leaving from here on, until Finish.
func (h *Hooks) Left(wanted func(id job.RankID, uuid string) bool) []job.RankID {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []job.RankID
	for id, r := range h.records {
		if !h.late[id] && !wanted(id, r.UUID) {
			h.late[id] = true
			list = append(list, id)
		}
	}
	return list
}

// Leaving says whether such a rank is not finished.
func (h *Hooks) Leaving() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.late) > 0
}

// Longest is how long an epilog may take.
func (h *Hooks) Longest() (d time.Duration) {
	for _, p := range h.Epilog {
		d += time.Duration(p.Timeout)
	}
	return d
}

// Finish runs the epilog of a rank that is Left.
func (h *Hooks) Finish(ctx context.Context, id job.RankID) {
	h.mu.Lock()
	r := h.records[id]
	h.mu.Unlock()
	if r.Stage != isOver && !h.epilog(ctx, r) {
		return
	}
	h.Forget(id)
}
