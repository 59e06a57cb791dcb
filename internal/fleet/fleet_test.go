package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// size is that of a run. `make bench-fleet` sets it by variables of the environment.
type size struct {
	nodes, gpus, jobs int
	runs              time.Duration // how long a job runs
	apart             bool          // from half as long to half as long again, by the node: they do not all end together
}

// TestFleet: nodes of a fleet join over TLS and run all jobs, each once, also
// when the controller is killed in the middle and started again.
func TestFleet(t *testing.T) {
	// All nodes in one process look through what all have in memory for what each throws away. A node's own process has so little that it seldom does.
	was := debug.SetGCPercent(400)
	t.Cleanup(func() { debug.SetGCPercent(was) })
	sz := size{nodes: number(t, "NODES", 20), gpus: number(t, "GPUS", 8), jobs: number(t, "JOBS", 200), runs: time.Duration(number(t, "RUN_MS", 100)) * time.Millisecond}
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart=%t", restart), func(t *testing.T) {
			f := newFleet(t, sz)
			f.run(restart)
			f.report(restart)
		})
	}
}

func number(t *testing.T, name string, otherwise int) int {
	text := os.Getenv("GBATCH_FLEET_" + name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s: use a whole number from 1 on", name, text)
	}
	return n
}

// fleet is a controller with its hollow nodes.
type fleet struct {
	t *testing.T
	size
	ctld    *controller
	address string // of the controller, with its pin
	user    *client.Client
	counts  counts
	joined  time.Duration // until all nodes were known
	back    time.Duration // from the controller's end until it had answered all nodes again
	submits []time.Duration
	lists   []time.Duration
	sent    int // jobs that were taken
}

// newFleet starts a controller and has all nodes join it; the test's cleanup ends them.
func newFleet(t *testing.T, sz size) *fleet {
	t.Helper()
	f := &fleet{t: t, size: sz, ctld: newController(t, sz.nodes)}
	f.counts = counts{begun: map[job.RankID]int{}, heard: map[string]time.Time{}}
	local := &client.Client{Address: "unix://" + f.ctld.socket()}
	defer local.Close()
	secret := func(r api.TokenRequest) string {
		token, err := local.CreateToken(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return token.Secret
	}
	f.address = f.ctld.address()
	f.user = &client.Client{Address: f.address, Token: secret(api.TokenRequest{Use: api.TokenUser, User: "fleet"}), Timeout: patience, Retry: client.Retry{For: patience}}
	t.Cleanup(f.user.Close)
	join := filepath.Join(f.ctld.dir, "join.token")
	if err := os.WriteFile(join, []byte(secret(api.TokenRequest{Use: api.TokenJoin, Uses: sz.nodes})), 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	f.begin(join)
	waitWithin(t, 10*patience, "all nodes are up", func() bool {
		info, err := local.Cluster(t.Context())
		up := 0
		for i := 0; err == nil && i < len(info.Nodes); i++ {
			if info.Nodes[i].State == "up" {
				up++
			}
		}
		return up == sz.nodes
	})
	f.joined = time.Since(began)
	return f
}

// begin has all nodes join, so many at once, and keep up contact until the test ends.
func (f *fleet) begin(join string) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running, joining sync.WaitGroup
	f.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	all := make(chan int)
	for range 8 {
		joining.Go(func() { // ends with all
			for i := range all {
				h, err := f.join(f.t.Context(), i, join)
				if err != nil {
					f.t.Error(err)
					continue
				}
				running.Go(func() { // ends with ctx
					defer h.ctl.Close()
					h.contact.Run(ctx)
				})
			}
		})
	}
	for i := range f.nodes {
		all <- i
	}
	close(all)
	joining.Wait()
	if f.t.Failed() {
		f.t.FailNow()
	}
}

const document = `{"name":"fleet","request":{"resources":{"gpus":1,"cpus":1,"cpuMemoryGb":1},"docker":{"image":"busybox:1","command":"true"}}}`

// run submits all jobs, kills the controller in the middle where restart says so, and
// waits until each has ended.
func (f *fleet) run(restart bool) {
	t := f.t
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var probing sync.WaitGroup
	probing.Go(func() { f.probe(ctx) }) // ends with ctx
	restarted := !restart
	for left := f.jobs; left > 0; {
		n := min(left, api.MaxSubmissions, max(f.jobs/4, 1))
		if err := f.submit(n); err != nil {
			cancel()
			probing.Wait()
			t.Fatal(err)
		}
		left -= n
		if !restarted && left <= f.jobs/2 {
			restarted = true
			f.restart()
		}
	}
	cancel()
	probing.Wait()
	f.sent += f.jobs
	waitWithin(t, 10*patience+time.Duration(f.jobs)*time.Millisecond*10, "all jobs have ended", func() bool {
		s, err := f.user.Status(t.Context())
		return err == nil && s.Jobs[job.Queued]+s.Jobs[job.Assigned]+s.Jobs[job.Starting]+s.Jobs[job.Running] == 0
	})
	f.counts.mu.Lock()
	defer f.counts.mu.Unlock()
	if len(f.counts.begun) != f.sent {
		t.Errorf("%d ranks were begun, of %d jobs", len(f.counts.begun), f.sent)
	}
	for id, times := range f.counts.begun {
		if id.Attempt != 1 || times != 1 {
			t.Errorf("%v was begun %d times", id, times)
		}
	}
}

// submit submits so many jobs at once.
func (f *fleet) submit(n int) error {
	batch := make([]api.KeyedSubmission, n)
	for i := range batch {
		batch[i].Job = []byte(document)
	}
	results, err := client.SubmitMany(f.t.Context(), f.user, batch)
	for _, r := range results {
		if err == nil && r.Error != nil {
			err = r.Error
		}
	}
	return err
}

// restart kills the controller and starts it again.
func (f *fleet) restart() {
	f.ctld.kill()
	began := time.Now()
	f.ctld.start()
	f.answered(began)
	f.back = time.Since(began)
}

// answered waits until all nodes were answered after a time.
func (f *fleet) answered(after time.Time) {
	f.t.Helper()
	waitWithin(f.t, 10*patience, "all nodes are answered", func() bool {
		f.counts.mu.Lock()
		defer f.counts.mu.Unlock()
		n := 0
		for _, at := range f.counts.heard { // a count
			if at.After(after) {
				n++
			}
		}
		return n == f.nodes
	})
}

// probe is what one user notices meanwhile: it submits a job and lists the first 100,
// ten times a second.
func (f *fleet) probe(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		_, err := f.user.Submit(f.t.Context(), &api.SubmitRequest{Job: []byte(document)}, "")
		submitted := time.Now()
		_, lerr := f.user.Jobs(f.t.Context(), client.JobFilter{Limit: 100})
		if err = errors.Join(err, lerr); err != nil {
			f.t.Errorf("beside the others: %v", err)
			return
		}
		f.sent++
		f.submits, f.lists = append(f.submits, submitted.Sub(began)), append(f.lists, time.Since(submitted))
		_ = client.Sleep(ctx, 100*time.Millisecond)
	}
}

// report says how fast that was, in a row of the table where one is asked for.
func (f *fleet) report(restart bool) {
	f.ctld.kill() // so that its processor time is known
	f.counts.mu.Lock()
	defer f.counts.mu.Unlock()
	took := f.counts.last.Sub(f.counts.first)
	back := "-"
	if restart {
		back = fmt.Sprintf("%.1f s", f.back.Seconds())
	}
	row := []string{
		fmt.Sprintf("%d x %d", f.nodes, f.gpus), strconv.Itoa(f.sent), fmt.Sprintf("%.1f s", f.joined.Seconds()), fmt.Sprintf("%.0f/s", float64(f.sent)/took.Seconds()),
		fmt.Sprintf("%.2f ms", f.ctld.cpu.Seconds()*1000/float64(f.sent)), fmt.Sprintf("%d MiB", f.ctld.memory>>10),
		percentiles(f.submits), percentiles(f.lists), percentiles(f.counts.syncs), back,
	}
	line := "| " + strings.Join(row, " | ") + " |\n"
	f.t.Log(line)
	name := os.Getenv("GBATCH_FLEET_TABLE")
	if name == "" {
		return
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644)
	if err == nil {
		_, err = file.WriteString(line)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		f.t.Error(err)
	}
}

// percentiles are the 50th and the 99th.
func percentiles(list []time.Duration) string {
	if len(list) == 0 {
		return "-"
	}
	slices.Sort(list)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return fmt.Sprintf("%.1f, %.1f ms", ms(list[len(list)/2]), ms(list[len(list)*99/100]))
}
