package e2e

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/client"
	"gbatch/internal/e2e/crash"
	"gbatch/internal/job"
)

// programs are what the tracer calls ours. Containers and what else they start have
// no name.
func programs(args []string) string {
	if len(args) < 2 {
		return ""
	}
	switch base := filepath.Base(args[0]); {
	case args[1] == "run" && (base == "gctld" || base == "gnoded"):
		return base
	case args[1] == "shim" && base == "gnoded":
		return "shim"
	}
	return ""
}

// follow starts a daemon that a tracer follows.
func (d *daemon) follow(cmd *exec.Cmd) {
	d.s.t.Helper()
	p, err := d.tracer.Start(cmd)
	if err != nil {
		d.s.t.Fatalf("start %s: %v", d.name, err)
	}
	d.cmd, d.done = cmd, make(chan struct{})
	go func(done chan<- struct{}) { // ends with the process; stop and kill wait for it
		<-p.Done()
		d.err = p.Err()
		close(done)
	}(d.done)
}

// TestKilledAtCalls kills the controller, the node's daemon and its shims as they are
// about to make a system call that changes something, while a job is submitted, runs
// and ends: at up to GBATCH_CRASH_POINTS calls of each, spread over them. What is
// acknowledged ends once, as it should, and nothing is left of it.
func TestKilledAtCalls(t *testing.T) {
	points := number(t, "GBATCH_CRASH_POINTS", 0)
	if points == 0 {
		t.Skip("NOT TESTED: kills at each system call are done by make crash")
	}
	for _, program := range []string{"gctld", "gnoded", "shim"} {
		t.Run(program, func(t *testing.T) {
			k := newCalls(t, program)
			n := k.count()
			t.Logf("%s makes %d calls for a job", program, n)
			first := rand.New(rand.NewPCG(uint64(number(t, "GBATCH_E2E_SEED", 1)), 1)).Float64()
			for i := range min(points, n) {
				k.kill(1 + int((float64(i)+first)*float64(n)/float64(min(points, n))))
			}
			t.Logf("%d of %d were killed at their call", k.hits, min(points, n))
		})
	}
}

// calls is a site of which one program is killed, once for each job.
type calls struct {
	s       *site
	program string
	tracer  *crash.Tracer
	victim  *daemon // to start again
	hits    int
}

func newCalls(t *testing.T, program string) *calls {
	k := &calls{program: program, tracer: &crash.Tracer{Name: programs}}
	k.s = newSite(t, siteOptions{ctldConfig: quick, made: func(s *site) {
		k.victim = s.ctld
		if program != "gctld" {
			k.victim = s.nodes[0]
		}
		k.victim.tracer = k.tracer
	}})
	return k
}

// job submits one whose program says when it begins and ends, and returns its number
// when that is acknowledged.
func (k *calls) job(key string) string {
	k.s.t.Helper()
	return k.submit(key, doc{name: "crash", cpus: 8, storage: []any{"/project"},
		command: sh("echo begin >> /project/$GBATCH_JOB_NUMBER; echo end >> /project/$GBATCH_JOB_NUMBER; exit 7")})
}

// submit returns a job's number when that is acknowledged.
func (k *calls) submit(key string, d doc) string {
	k.s.t.Helper()
	file := k.s.write(d.json())
	answer := make(chan result, 1)
	go func() { // ends with the command, which gives up
		answer <- k.s.run("gsubmit", "--timeout", "30s", "--idempotency-key", key, file)
	}()
	var r result
	eventually(k.s.t, "gsubmit has ended", func() bool {
		k.again() // the client waits for a controller that is gone
		select {
		case r = <-answer:
			return true
		default:
			return false
		}
	})
	if r.code != 0 {
		k.s.t.Fatalf("gsubmit: %v", r)
	}
	return strings.TrimSpace(r.out)
}

// again starts the daemon if it has ended.
func (k *calls) again() {
	if !k.victim.running() {
		k.victim.start()
	}
}

// end waits until a job has ended, and starts the daemon again as often as needed.
func (k *calls) end(id string) ended {
	k.s.t.Helper()
	var end ended
	eventually(k.s.t, "job "+id+" ends", func() bool {
		k.again()
		d, err := k.s.api.Job(k.s.t.Context(), id, client.JobOptions{})
		if err != nil || !d.State.Final() {
			return false
		}
		end = endOf(d)
		return true
	})
	return end
}

// count says how many calls the program makes for a job that is not the first one.
func (k *calls) count() int {
	k.s.t.Helper()
	made := 0
	for _, key := range []string{"first", "count"} {
		trap := k.tracer.Set(k.program, 0)
		if got := k.end(k.job(key)); got != asked {
			k.s.t.Fatalf("a job without a kill: %+v", got)
		}
		eventually(k.s.t, "nothing is left of it", func() bool { return len(k.left()) == 0 })
		made = len(trap.Calls())
	}
	return made
}

// asked is the end of the jobs here.
var asked = ended{job.Failed, job.ExitCode, 7}

// kill kills the program at a call, and looks at what becomes of the job.
func (k *calls) kill(at int) {
	t := k.s.t
	t.Helper()
	trap := k.tracer.Set(k.program, at)
	id := k.job(fmt.Sprintf("%s-%d", k.program, at))
	end := k.end(id)
	made := trap.Calls()
	select {
	case <-trap.Hit():
		k.hits++
	default:
		k.tracer.Set("", 0) // the calls of one job differ from those of another
		return
	}
	t.Logf("killed at call %d of %s, %s: job %s ended %v", at, k.program, made[len(made)-1], id, end)
	var ran []string // nothing, if it never began
	if file := filepath.Join(k.s.project(), id); exists(file) {
		ran = lines(t, file)
	}
	lost := k.program == "shim" && end != asked
	switch {
	case lost && slices.Equal(ran, []string{"begin", "end"}[:min(len(ran), 2)]): // what a shim knew is gone with it: the job has another end, but runs once
	case !lost && end == asked && cmp.Equal([]string{"begin", "end"}, ran):
	default:
		t.Errorf("killed at call %d of %s, %s: job %s ended %v, its program wrote %q\n%s", at, k.program, made[len(made)-1], id, end, ran, describe(k.s.job(id)))
	}
	if !poll(patience, func() bool { k.again(); return len(k.left()) == 0 }) {
		t.Errorf("killed at call %d of %s, %s: of job %s is left:\n%s", at, k.program, made[len(made)-1], id, strings.Join(k.left(), "\n"))
	}
}

// left is what the site's ranks have on the machine.
func (k *calls) left() []string {
	var left []string
	for _, what := range k.s.leftovers() {
		if ofRank(what) {
			left = append(left, what)
		}
	}
	return left
}
