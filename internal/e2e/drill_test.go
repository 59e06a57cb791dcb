package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// loopDisk mounts a small ext4 file system, as of a disk of its own.
func loopDisk(t *testing.T, mib int) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "gbatch-e2e-disk-")
	if err != nil {
		t.Fatal(err)
	}
	image := dir + ".image"
	t.Cleanup(func() { // after the site has stopped
		_ = os.Remove(image)
		_ = os.Remove(dir)
	})
	for _, args := range [][]string{{"truncate", "-s", fmt.Sprintf("%dM", mib), image}, {"mkfs.ext4", "-q", "-m", "0", image}, {"mount", "-o", "loop", image, dir}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", args[0], err, out)
		}
	}
	t.Cleanup(func() {
		if !poll(patience, func() bool { return unix.Unmount(dir, 0) == nil }) {
			t.Errorf("%s is in use", dir)
		}
	})
	return dir
}

// TestFaultDrill does one thing after the other to a site while jobs are submitted, run and end:
// it kills and stops daemons, cuts nodes off, fills disks, sets clocks and garbles nodes' records. Every
// acknowledged job ends as its program does, once, or for the reason that was done to it. It
// takes GBATCH_DRILL_MINUTES; see `make drill`.
func TestFaultDrill(t *testing.T) {
	minutes := number(t, "GBATCH_DRILL_MINUTES", 0)
	if minutes == 0 {
		t.Skip("SKIPPED: it takes as long as GBATCH_DRILL_MINUTES says; `make drill` runs it")
	}
	seed := number(t, "GBATCH_E2E_SEED", int(time.Now().UnixNano()%1e9))
	ctldDisk, nodeDisk := loopDisk(t, 300), loopDisk(t, 300)
	f := &faults{disks: []string{ctldDisk, nodeDisk}, garbled: map[string]bool{}, done: map[string]int{}}
	s := newSite(t, siteOptions{nodes: 2, ctldDir: filepath.Join(ctldDisk, "ctld"), nodeDirs: []string{"", nodeDisk},
		made: func(s *site) {
			f.clocks = append(f.clocks, newClock(t, s.ctld, s.dir))
			for _, n := range s.nodes {
				f.clocks = append(f.clocks, newClock(t, n, n.stateDir))
			}
		},
		nodesDial: func(node int, controller string) string {
			w := newWire(t, strings.TrimPrefix(controller, "unix://"), node)
			f.wires = append(f.wires, w)
			return "unix://" + w.path
		}})
	f.clocks[0].proves(t, s.ctld)
	f.drill = &drill{s: s, dice: rand.New(rand.NewPCG(uint64(seed), 2)), acked: map[string]int{}}
	rounds := 0
	for end := time.Now().Add(time.Duration(minutes) * time.Minute); time.Now().Before(end) && !t.Failed(); rounds++ {
		f.round()
	}
	f.check()
	t.Logf("GBATCH_E2E_SEED=%d: %d rounds, %d jobs were acknowledged, %d had their records garbled; %v", seed, rounds, len(f.acked), len(f.garbled), f.done)
}

// faults is a drill that does more than kill.
type faults struct {
	*drill
	wires   []*wire
	disks   []string
	clocks  []*clock
	cutOff  func() (undo func()) // of one of several controllers; nil: there is one
	garbled map[string]bool      // jobs whose record on a node was
	done    map[string]int       // by kind of fault
}

// round submits jobs while something is done to the site, and takes that back.
func (f *faults) round() {
	submitted := make(chan struct{})
	files := f.batch(4)
	go func() { // round waits for it
		defer close(submitted)
		for _, w := range files {
			f.submit(w)
		}
	}()
	f.pause(400)
	kinds := []struct {
		name string
		do   func() (undo func())
	}{{"kill", f.kill}, {"stop", f.halt}, {"cut", f.cut}, {"full", f.full}, {"garble", f.garble}, {"step", f.step}}
	first := f.dice.IntN(len(kinds))
	list := kinds[first : first+1]
	if f.dice.IntN(3) == 0 { // two at once, each of which has a cause of its own
		list = append(list[:1:1], kinds[(first+1+f.dice.IntN(len(kinds)-1))%len(kinds)])
	}
	var undo []func()
	wasFull := false
	for _, k := range list {
		f.done[k.name]++
		u := k.do()
		if k.name == "full" { // who starts has room
			undo, wasFull = append([]func(){u}, undo...), true
		} else {
			undo = append(undo, u)
		}
	}
	f.pause(4000)
	for _, u := range undo {
		u()
	}
	over := false
	for !over {
		f.revive(wasFull)
		over = poll(time.Second, func() bool {
			select {
			case <-submitted:
				return true
			default:
				return false
			}
		})
	}
	f.revive(wasFull)
}

// revive starts daemons that have ended, as what runs as a service is started again. Only where there
// was no room for them may they end by themselves.
func (f *faults) revive(wasFull bool) {
	for _, p := range f.daemons() {
		switch {
		case p.running():
		case wasFull:
			f.done["ended for want of room"]++
			p.start()
		default:
			f.s.t.Errorf("%s has ended by itself: %v\n%s", p.name, p.err, tail(p.log, 20))
			p.start()
		}
	}
}

// some are daemons, at least one.
func (f *faults) some() []*daemon {
	list := f.daemons()
	f.dice.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:1+f.dice.IntN(len(list))]
}

func (f *faults) kill() func() {
	victims := f.some()
	for _, v := range victims {
		v.kill()
	}
	return func() {
		for _, v := range victims {
			if !v.running() {
				v.start()
			}
		}
	}
}

// halt has daemons stand still, as on a machine that does.
func (f *faults) halt() func() {
	var pids []int
	for _, v := range f.some() {
		if v.running() {
			pids = append(pids, v.cmd.Process.Pid)
		}
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	return func() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
}

func (f *faults) cut() func() {
	if f.cutOff != nil {
		return f.cutOff()
	}
	w := f.wires[f.dice.IntN(len(f.wires))]
	w.cut()
	return w.mend
}

// full takes all room of a disk, or all but what is kept in reserve.
func (f *faults) full() func() {
	filler := fill(f.s.t, f.disks[f.dice.IntN(len(f.disks))], int64(f.dice.IntN(2)*40)<<20)
	return func() {
		if err := os.Remove(filler); err != nil {
			f.s.t.Error(err)
		}
	}
}

// garble spoils a node's record of a rank while its daemon is away.
func (f *faults) garble() func() {
	n := f.s.nodes[f.dice.IntN(len(f.s.nodes))]
	n.kill()
	records, err := filepath.Glob(filepath.Join(n.stateDir, "ranks", "*", "rank.json"))
	if err != nil {
		f.s.t.Error(err)
	}
	f.dice.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
	for _, path := range records {
		if exists(filepath.Join(filepath.Dir(path), "ended")) {
			continue // it is kept for its log
		}
		id, _, _ := strings.Cut(filepath.Base(filepath.Dir(path)), "_")
		f.garbled[id] = true
		if f.dice.IntN(2) == 0 {
			err = os.Remove(path)
		} else {
			err = os.Truncate(path, int64(f.dice.IntN(100)))
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			f.s.t.Error(err)
		}
		break
	}
	return func() {
		if !n.running() {
			n.start()
		}
	}
}

// goOn waits as long as jobs end: on a machine that is busy with other things hundreds may still wait.
func (f *faults) goOn() {
	left := func() (n int) {
		list, err := f.s.api.Jobs(f.s.t.Context(), client.JobFilter{})
		if err != nil {
			return len(f.acked)
		}
		for _, j := range list.Jobs {
			if !j.State.Final() {
				n++
			}
		}
		return n
	}
	for before := left(); before > 0; {
		now := before
		if !poll(patience, func() bool { now = left(); return now < before }) {
			f.s.t.Errorf("for %v none of %d jobs has ended", patience, now)
			return
		}
		before = now
	}
}

// check waits for every acknowledged job and compares.
func (f *faults) check() {
	t := f.s.t
	if len(f.acked) != f.keys {
		t.Errorf("%d jobs were acknowledged for %d submissions", len(f.acked), f.keys)
	}
	f.goOn()
	for id, code := range f.acked {
		want := ended{job.Failed, job.ExitCode, code}
		if code == 0 {
			want = finished
		}
		detail := f.s.wait(id)
		ran := []string{}
		if path := filepath.Join(f.s.project(), id); exists(path) {
			ran = lines(t, path)
		}
		if got := endOf(detail); f.garbled[id] && got.State == job.Failed && got.Reason == job.NodeFail && len(ran) <= 2 {
			continue
		}
		if diff := cmp.Diff(want, endOf(detail)); diff != "" {
			t.Errorf("end (-want +got):\n%s\n%s", diff, describe(detail))
		}
		if diff := cmp.Diff([]string{"begin", "end"}, ran); diff != "" {
			t.Errorf("job %s: what ran (-want +got):\n%s\n%s", id, diff, describe(detail))
		}
		f.checkBill(detail)
	}
}

// checkBill: whatever was done to clocks, nobody pays for time that did not pass. A job of a
// second may wait for a fault or two to be over before it is known to have ended.
func (f *faults) checkBill(d *api.JobDetail) {
	const most = 5 * 60 // seconds
	u := d.Used
	if u == nil || u.ElapsedS < 0 || u.ElapsedS > most || u.CPUSeconds < 0 || u.CPUSeconds > most*4 || d.Ended.Before(d.Started) {
		f.s.t.Errorf("job %s is billed %+v\n%s", d.ID, u, describe(d))
	}
}
