package chaos

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/ctld/jobstore"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/ctld/site"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/oci/journal"
	"gbatch/oci/result"
	"gbatch/sched"
)

// plantSeeds bounds the seeds in which a planted bug is to be found.
const plantSeeds = 120

// TestPlantedBugs: the net catches fish. Each bug is found, and it is said how many seeds that took.
func TestPlantedBugs(t *testing.T) {
	if !*bugs {
		t.Skip("SKIPPED, it takes minutes: make planted")
	}
	for _, p := range planted() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= plantSeeds; seed++ {
				h := usual(seed, 40*time.Minute)
				switch {
				case p.from > 0:
					h = oneOften(p.from+seed-1, time.Hour, 10*time.Second)
				case p.controllers > 0:
					h = severally(seed, p.controllers, 40*time.Minute)
				}
				h.plant = &p
				if out := live(t, h); out.violation != "" {
					t.Logf("found by seed %d: %s", h.seed, out.violation)
					return
				}
			}
			t.Errorf("not found by %d seeds", plantSeeds)
		})
	}
}

// answered has a bug change what a node is answered.
func answered(f func(*api.SyncResponse, time.Duration)) func(*api.SyncRequest, *api.SyncResponse, time.Duration) {
	return func(_ *api.SyncRequest, resp *api.SyncResponse, took time.Duration) { f(resp, took) }
}

// loaded has a bug change jobs as they are read at a start; nil: the record is left out.
func loaded(change func(*state.Job) *state.Job) func(*control.Controller) func(state.Record) error {
	return func(c *control.Controller) func(state.Record) error {
		return func(r state.Record) error {
			if r.Kind == state.KindJob {
				j, err := state.DecodeJob(r.Value)
				if err != nil {
					return err
				}
				if j = change(j); j == nil {
					return nil
				}
				r.Value = j.Encode()
			}
			return c.Load(r)
		}
	}
}

// byWall has the controller count by the clock that people set.
func byWall(read loop.Readings) loop.Readings {
	return func() (time.Time, time.Duration) {
		wall, _ := read()
		return wall, time.Duration(wall.UnixNano())
	}
}

// forgetful leaves out the last job that has ended, and so gives its number again.
func forgetful(c *control.Controller) func(state.Record) error {
	var last *state.Record
	return func(r state.Record) error {
		if r.Kind != state.KindJob {
			return c.Load(r)
		}
		if last != nil {
			if err := c.Load(*last); err != nil {
				return err
			}
			last = nil
		}
		j, err := state.DecodeJob(r.Value)
		if err == nil && j.State.Final() {
			r.Value = append([]byte{}, r.Value...)
			last = &r
			return nil
		}
		return c.Load(r)
	}
}

// flipped turns a bit around in one of eight records of jobs. What cannot be read any more is said to be so, and is not this bug.
func flipped(c *control.Controller) func(state.Record) error {
	return func(r state.Record) error {
		if draw := rand.New(rand.NewPCG(uint64(r.Job), uint64(len(r.Value)))); r.Kind == state.KindJob && draw.IntN(8) == 0 {
			bad := slices.Clone(r.Value)
			bad[draw.IntN(len(bad))] ^= 1 << draw.IntN(8)
			if _, err := state.DecodeJob(bad); err == nil {
				r.Value = bad
			}
		}
		return c.Load(r)
	}
}

// viewOf shows jobs as they were when somebody looked first in this minute.
func viewOf() func(*process) *jobstore.Reader {
	var at int64
	var of *process
	var view *state.View
	return func(p *process) *jobstore.Reader {
		if minute := int64(p.w.now() / (20 * time.Second)); view == nil || of != p || minute != at {
			at, of, view = minute, p, p.loop.View()
		}
		return &jobstore.Reader{View: func() *state.View { return view }, Store: p.store}
	}
}

// unsynced has nodes leave out the syncs of what has this name.
func unsynced(name string) func(path string) bool {
	return func(path string) bool { return filepath.Base(path) == name }
}

// fenceless has what is said of a rank count for the last attempt of which something was said.
func fenceless() func(*api.SyncRequest) {
	var mu sync.Mutex
	last := map[string]uint32{}
	return func(r *api.SyncRequest) {
		mu.Lock()
		defer mu.Unlock()
		for i := range r.Ranks {
			id := &r.Ranks[i].ID
			job := fmt.Sprint(r.Ranks[i].UUID, id.Task, id.Rank)
			last[job] = max(last[job], id.Attempt)
			id.Attempt = last[job]
		}
	}
}

// planted are the bugs that are to be found.
func planted() []plant {
	return []plant{
		{name: "the disk does not sync before the answer", unsynced: true},
		{name: "a submission is answered before it is stored", answersEarly: true},
		{name: "a cancellation is answered and not done", dropsCancels: true},
		{name: "a client asks again by a new key", newKeys: true},
		{name: "reads are of an old view", oldViews: viewOf()},
		{name: "the number of a job is given again after a restart", load: forgetful},
		{name: "a flipped bit of a record is served", load: flipped},
		{name: "a restart forgets cancellations", load: loaded(func(j *state.Job) *state.Job { j.Ending = nil; return j })},
		{name: "a restart queues what runs", load: loaded(func(j *state.Job) *state.Job {
			if j.State.Active() {
				j.State, j.Attempt, j.Ending = "QUEUED", nil, nil
			}
			return j
		})},
		{name: "a restart takes all nodes for silent", impatient: 115 * sched.Second},
		{name: "the controller counts by the wall clock", readings: byWall},
		{name: "the lease is longer than the patience", answer: answered(func(r *api.SyncResponse, _ time.Duration) { r.LeaseMS *= 4 })},
		{name: "the patience is shorter than the lease", site: func(c *site.Config) { c.Nodes.Timeout = 60 }, answer: answered(func(r *api.SyncResponse, _ time.Duration) { r.LeaseMS = 96_000 })},
		{name: "a node's lease is by its wall clock", wallLease: true},
		{name: "a node keeps no lease", noLease: true, noShims: true},
		{name: "a daemon forgets what runs", forgetsRunning: true},
		{name: "a node ends nothing that it is told to", ignoresStops: true},
		{name: "an end is told before the container is gone", status: func(_ *machine, r *rank, s *node.RankStatus) {
			if r.stop != nil && r.exit == nil && r.begun {
				s.Phase, s.Exit = node.PhaseEnded, &node.Exit{Code: 143, Signal: 15, Reason: r.stop.reason}
			}
		}},
		{name: "of three controllers one acknowledges alone", controllers: 3, early: true},
		{name: "of three controllers one votes for another that lacks entries", controllers: 3, anyVote: true},
		{name: "of three controllers one follows an earlier term", controllers: 3, anyTerm: true},
		{name: "of three controllers one that stood still answers reads", controllers: 3, stale: true},
		{name: "of three controllers the next one counts by its own clock", controllers: 3, ownClock: true},
		{name: "of three controllers each forgets the end of its log when it starts", controllers: 3, shortLog: true},
		{name: "of three controllers the next one serves a flipped bit of a record", controllers: 3, load: flipped},
		{name: "of three controllers those that follow answer reads", controllers: 3, followers: true},
		{name: "of three controllers one answers reads for longer than the others wait for it", controllers: 3, readLease: 4 * patience},
		{name: "of three controllers one joins from an old copy", controllers: 3, staleCopy: true},
		{name: "of three controllers one that lost its disk goes on as if it had not", controllers: 3, wiped: true},
		{name: "of three controllers the next one gives a number again", controllers: 3, load: forgetful},
		{name: "of three controllers the next one waits for no node", controllers: 3, impatient: 115 * sched.Second},
		{name: "of three controllers the next one forgets cancellations", controllers: 3, load: loaded(func(j *state.Job) *state.Job { j.Ending = nil; return j })},
		{name: "with three controllers the lease is longer than the patience", controllers: 3, answer: answered(func(r *api.SyncResponse, _ time.Duration) { r.LeaseMS *= 4 })},
		{name: "a node does not sync the record of a rank", leavesSync: unsynced("rank.json.tmp")},
		{name: "a node does not sync the names of ranks", leavesSync: func(path string) bool {
			return !strings.Contains(filepath.Base(path), ".") && strings.HasPrefix(filepath.Base(path), "n")
		}},
		{name: "a node does not sync that a program begins", leavesSync: unsynced("box")},
		{name: "a node does not sync how a program ended", leavesSync: unsynced(result.FileBegun)},
		{name: "a node does not sync its journal", leavesSync: unsynced(journal.File)},
		{name: "a node is told of a job before its disk knows of an answer", from: 12350, taken: func(r *api.SyncRequest) {
			if r.Records == "" {
				r.Seen = max(r.Seen, 1)
			}
		}},
		{name: "a node that is put back on an image has the controller's last word", from: 16300, wordApart: true},
		{name: "what a node says of an attempt before is taken for the last one", taken: fenceless()},
		{name: "a node takes any answer for that to what it asked", answer: func(req *api.SyncRequest, resp *api.SyncResponse, _ time.Duration) { resp.Nonce = req.Nonce }},
		{name: "every end is told as a success", status: func(_ *machine, _ *rank, s *node.RankStatus) {
			if s.Exit != nil && s.Exit.StartedMS > 0 {
				e := *s.Exit
				e.Code, e.Reason = 0, ""
				s.Exit = &e
			}
		}},
	}
}
