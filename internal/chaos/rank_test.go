package chaos

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/contact"
	"gbatch/oci/atomicfile"
	"gbatch/oci/result"
)

// What a node does with its ranks: a model of internal/noded, whose containers are timers. All of it
// is called with the machine's mu held, where it does not say otherwise.

// rank is a rank as the node's disk has it, and how far the daemon has come with it.
type rank struct {
	id       job.RankID
	order    api.RunOrder
	phase    node.Phase
	goes     bool // of a gang: its program may begin
	stop     *stop
	begun    bool      // on the disk before the program begins
	started  time.Time // by the wall clock of then,
	wallMS   int64     // which was so far ahead of the clock from boot
	exit     *node.Exit
	lost     bool          // how it ended is not known, or not on the disk
	nowhere  bool          // nothing of it is on the disk, which was full
	boot     int           // of the machine, in which it was accepted
	told     time.Duration // when
	endedIn  int           // which boot of the machine
	ahead    time.Duration // its wall clock, then
	released bool          // the controller has let go of it; only its end is kept
	dropped  bool          // it is to be let go of when it has ended
}

// stop is that a rank shall end, and why.
type stop struct {
	signal, text string
	grace        time.Duration
	reason       job.Reason
}

// container is one that runs, as it truly is.
type container struct {
	m        *machine
	id       job.RankID
	uuid     string
	name     string // of its job
	gpus     []string
	cores    int
	code     int
	told     time.Duration // of it
	began    time.Duration
	alone    bool // it needs no lease
	stopping bool
	timers   []*time.Timer
}

func (c *container) after(d time.Duration, f func()) {
	c.timers = append(c.timers, time.AfterFunc(d, f))
}

// stop has no timer of it do anything any more.
func (c *container) stop() {
	for _, t := range c.timers {
		t.Stop()
	}
}

func sorted[V any](set map[job.RankID]V) []job.RankID {
	return slices.SortedFunc(maps.Keys(set), func(a, b job.RankID) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Rank, b.Rank))
	})
}

// imageDigest is that of every image.
var imageDigest = "sha256:" + strings.Repeat("a", 64)

func (m *machine) status(r *rank) node.RankStatus {
	s := node.RankStatus{ID: r.id, UUID: r.order.UUID, Phase: r.phase, Exit: r.exit, Stopping: r.stop != nil}
	if r.begun {
		s.Image, s.StartedMS, s.WallMS = imageDigest, r.started.UnixMilli(), r.wallMS
	} else if r.phase == node.PhaseReady {
		s.Image = imageDigest
	}
	if r.exit != nil {
		e := *r.exit
		s.Exit = &e
	}
	if r.exit == nil || r.endedIn == m.boots { // as the production's node does it: the clock may have been set since
		s.OnClock(m.wallMS())
	}
	if r.exit != nil && r.endedIn != m.boots && r.ahead != time.Duration(m.ahead.Load()) {
		m.w.audit.unclear(r.id.Job)
	}
	if m.w.plant.status != nil {
		m.w.plant.status(m, r, &s)
	}
	return s
}

// recover finds out what an earlier daemon left, by the disk.
func (m *machine) recover() {
	m.must(m.disk.shorten())
	for _, id := range sorted(m.ranks) {
		r := m.ranks[id]
		_, runs := m.runs[id]
		is := m.disk.read(r)
		if lacks := m.disk.lacks(r, is); lacks != "" {
			m.w.audit.violation("the disk of %s has not the %s of %s any more, which was durable", m.name, lacks, id)
		}
		if is != nil && (errors.Is(is.recorded, atomicfile.ErrDamaged) || errors.Is(is.ended, atomicfile.ErrDamaged)) {
			m.w.audit.saw("damaged files of nodes noticed")
		}
		switch {
		case is == nil || m.w.plant.forgetsRunning && runs: // nothing tells of it
			delete(m.ranks, id)
			if c := m.runs[id]; c != nil && !m.w.plant.forgetsRunning {
				m.signal(c, stop{signal: "KILL"})
			}
		case !is.begun && !is.released && errors.Is(is.ended, fs.ErrNotExist):
			m.forget(r)
		case runs:
			r.begun = true
			if is.recorded != nil && r.stop == nil { // what it may do, and for how long, is not known any more
				r.stop = &stop{signal: "KILL", reason: job.NodeFail, text: "the node's record of the job was damaged"}
			}
		case is.ended != nil:
			if r.exit != nil && !r.lost { // it was known, and is damaged
				r.exit = nil
				m.w.audit.unclear(id.Job)
				m.w.audit.saw("ends that nodes lost")
			}
			r.released = is.released
			if r.exit == nil {
				r.lost = true
				m.ends(r, node.Exit{Code: 137, Reason: job.NodeFail, Message: "how the program ended is not known"})
			}
		default:
			r.released = is.released
			r.exit.Code, r.exit.Signal = is.exit.Code, is.exit.Signal
		}
	}
}

// forget removes a rank that did not begin.
func (m *machine) forget(r *rank) {
	m.must(m.disk.drop(r))
	delete(m.ranks, r.id)
}

// must is for what the disk does not refuse.
func (m *machine) must(err error) {
	if err != nil {
		m.w.audit.violation("the disk of %s: %v", m.name, err)
	}
}

// resume goes on with stops. It takes the machine's mu.
func (m *machine) resume(d *daemon) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range sorted(m.ranks) {
		if r, c := m.ranks[id], m.runs[id]; c != nil && r.stop != nil && !d.dead {
			m.signal(c, *r.stop)
		}
	}
}

// Desire makes the desired set true.
func (d *daemon) Desire(resp *api.SyncResponse) {
	m := d.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if d.dead {
		return
	}
	wanted := map[job.RankID]bool{}
	for _, o := range resp.Desired {
		wanted[o.ID] = true
		d.want(o)
	}
	for _, id := range sorted(m.ranks) {
		if !wanted[id] {
			d.release(m.ranks[id])
		}
	}
}

func (d *daemon) want(o api.Order) {
	m := d.m
	r := m.ranks[o.ID]
	switch {
	case r != nil && !node.SameJob(r.order.UUID, o.UUID):
		d.release(r)
		if r.released {
			m.forget(r)
		}
		d.contact.Tell(contact.WithinProgress)
		return
	case r == nil && o.Run == nil:
		d.contact.Tell(contact.AtOnce)
		return
	case r == nil:
		r = &rank{id: o.ID, order: *o.Run, phase: node.PhaseAccepted, told: m.w.now()}
		m.ranks[o.ID], m.told = r, m.w.now()
		if r.nowhere = m.refused(d, r, m.disk.accept(r)); r.nowhere {
			return
		}
		d.contact.Tell(contact.WithinProgress)
		pull := between(m.w.draw("pull", m.name, o.ID), 50*time.Millisecond, 4*time.Second)
		m.w.wg.Go(func() { // ends with the daemon
			if sleep(d.ctx, pull) == nil {
				d.ready(r)
			}
		})
	case r.released:
		r.released = false // its end is told again
		d.contact.Tell(contact.AtOnce)
	}
	r.goes = r.goes || o.Go
	if s := o.Stop; s != nil && !m.w.plant.ignoresStops {
		d.stop(r, stop{signal: s.Signal, grace: time.Duration(s.GraceMS) * time.Millisecond, reason: s.Reason, text: s.Text})
	}
	if r.phase == node.PhaseReady && r.goes {
		soon := between(m.w.draw("go", m.name, o.ID), 10*time.Microsecond, time.Millisecond)
		m.w.wg.Go(func() { // not while the node makes its next report, ends with the daemon
			if sleep(d.ctx, soon) == nil {
				d.ready(r)
			}
		})
	}
}

// release lets go of a rank that the controller does not want: it is ended first.
func (d *daemon) release(r *rank) {
	m := d.m
	switch {
	case r.released:
	case r.nowhere:
		delete(m.ranks, r.id)
	case r.exit != nil:
		r.released = true
		m.must(m.disk.release(r))
	case !r.begun:
		m.forget(r)
	default:
		r.dropped = true
		d.stop(r, stop{signal: "TERM", grace: 10 * time.Second, reason: job.Server, text: "not wanted any more"})
	}
}

// stop ends a rank, for the first reason that is given.
func (d *daemon) stop(r *rank, s stop) {
	m := d.m
	if r.stop == nil {
		r.stop = &s
	}
	switch c := m.runs[r.id]; {
	case r.exit != nil:
	case c != nil:
		m.signal(c, s)
	case !r.begun:
		m.ends(r, node.Exit{Code: 143, Signal: 15, Reason: r.stop.reason, Message: r.stop.text})
		d.contact.Tell(contact.AtOnce)
	}
}

// ready begins a rank's program when all is there for it. It takes the machine's mu.
func (d *daemon) ready(r *rank) {
	m := d.m
	for {
		m.mu.Lock()
		if d.dead || m.ranks[r.id] != r || r.begun || r.exit != nil {
			m.mu.Unlock()
			return
		}
		if r.order.Ranks > 1 && !r.goes {
			r.phase = node.PhaseReady
			d.contact.Tell(contact.WithinProgress)
			m.mu.Unlock()
			return
		}
		if m.free(r) {
			m.begin(d, r)
			m.mu.Unlock()
			return
		}
		m.mu.Unlock()
		if sleep(d.ctx, 500*time.Millisecond) != nil {
			return
		}
	}
}

// free says whether nothing here holds what a rank was given, as far as the daemon knows.
func (m *machine) free(r *rank) bool {
	for _, id := range sorted(m.runs) {
		if o := m.ranks[id]; o == nil || o.exit != nil {
			continue // the daemon knows of no container
		}
		for _, g := range r.order.Allocation.GPUs {
			if slices.Contains(m.runs[id].gpus, g.UUID) {
				return false
			}
		}
	}
	return true
}

// begin starts the program: it is noted first.
func (m *machine) begin(d *daemon, r *rank) {
	if m.refused(d, r, m.disk.begun(r)) {
		return
	}
	r.begun, r.phase, r.started, r.wallMS = true, node.PhaseRunning, m.wall(), m.wallMS()
	c := &container{m: m, id: r.id, told: r.told, uuid: r.order.UUID, name: r.order.Spec.Name, cores: r.order.Allocation.CPUs, alone: r.order.Alone}
	for _, g := range r.order.Allocation.GPUs {
		c.gpus = append(c.gpus, g.UUID)
	}
	var runs int
	if _, err := fmt.Sscanf(strings.ReplaceAll(r.order.Spec.Name, "-", " "), "run %d exit %d", &runs, &c.code); err != nil {
		m.w.audit.violation("%s begins %q, which nobody submitted", m.name, r.order.Spec.Name)
	}
	m.w.audit.begin(m, c)
	m.runs[r.id] = c
	c.after(time.Duration(runs)*time.Second, func() { m.finish(c, c.code, 0) })
	if l := r.order.LimitMS; l > 0 {
		c.after(time.Duration(l)*time.Millisecond, func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.signal(c, stop{signal: "TERM", grace: 5 * time.Second, reason: job.MaxRuntime, text: "it ran for as long as it may"})
		})
	}
	d.contact.Tell(contact.WithinRunning)
}

// refused ends a rank that the node's full disk has no room for.
func (m *machine) refused(d *daemon, r *rank, err error) bool {
	if !errors.Is(err, syscall.ENOSPC) {
		m.must(err)
		return false
	}
	r.lost = true
	m.ends(r, node.Exit{Code: 125, Reason: job.NodeFail, Message: err.Error()})
	m.w.audit.saw("begins that full disks of nodes refused")
	d.contact.Tell(contact.AtOnce)
	return true
}

// signal has a container end: at once, or within its grace.
func (m *machine) signal(c *container, s stop) {
	r := m.ranks[c.id]
	if m.runs[c.id] != c || c.stopping && s.signal != "KILL" {
		return
	}
	if r != nil && r.stop == nil {
		r.stop = &s
	}
	number, within := 15, min(s.grace, 20*time.Second)
	if s.signal == "KILL" {
		number, within = 9, 50*time.Millisecond
	}
	c.stopping = true
	c.after(between(m.w.draw("end", m.name, c.id), time.Millisecond, max(within, 2*time.Millisecond)), func() { m.finish(c, 128+number, number) })
}

// finish is the end of a container. It takes the machine's mu.
func (m *machine) finish(c *container, code, signal int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.runs[c.id] != c {
		return
	}
	delete(m.runs, c.id)
	c.stop()
	m.w.audit.end(m, c, code, signal)
	r := m.ranks[c.id]
	if r == nil || r.exit != nil {
		return
	}
	e := node.Exit{Code: code, Signal: signal}
	switch {
	case signal != 0 && r.stop != nil:
		e.Reason, e.Message = r.stop.reason, r.stop.text
	case code != 0:
		e.Reason = job.ExitCode
	}
	m.ends(r, e)
	if d := m.daemon; d != nil {
		if r.dropped {
			d.release(r)
		}
		d.contact.Tell(contact.AtOnce)
	}
}

// ends writes down how a rank ended, where that is known.
func (m *machine) ends(r *rank, e node.Exit) {
	if !r.lost {
		err := m.disk.ended(r, result.Exit{Code: e.Code, Signal: e.Signal})
		if r.lost = errors.Is(err, syscall.ENOSPC); !r.lost {
			m.must(err)
		}
	}
	e.EndedMS, e.WallMS = m.wall().UnixMilli(), m.wallMS()
	if r.begun {
		e.StartedMS = r.started.UnixMilli()
	}
	if r.begun && !r.lost { // its shim tells for how long it ran
		e.StartedMS += e.WallMS - r.wallMS
	}
	r.exit, r.phase, r.endedIn, r.ahead = &e, node.PhaseEnded, m.boots, time.Duration(m.ahead.Load())
}

// LeaseOver ends all that runs and does not go on alone.
func (d *daemon) LeaseOver(silent, grace time.Duration) {
	m := d.m
	if sleep(d.ctx, between(m.w.draw("over", m.name), time.Microsecond, time.Millisecond)) != nil {
		return // not while the node makes its first report
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if d.dead || m.w.plant.noLease {
		return
	}
	for _, id := range sorted(m.ranks) {
		if r := m.ranks[id]; !r.released && !r.order.Alone {
			d.stop(r, stop{signal: "TERM", grace: grace, reason: job.NodeFail, text: "lost contact with the controller"})
		}
	}
}
