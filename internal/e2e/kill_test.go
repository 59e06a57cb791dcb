package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
)

// TestKillEachWay kills the controller, the node, and both in either order
// while a job runs and another waits. The job runs on and its exit code
// arrives; the other follows; neither runs twice.
func TestKillEachWay(t *testing.T) {
	t.Parallel() // it mostly waits
	for name, order := range map[string]string{
		"controller": "c", "node": "n", "controller_then_node": "cn", "node_then_controller": "nc",
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, siteOptions{})
			both := map[rune]*daemon{'c': s.ctld, 'n': s.nodes[0]}
			first := s.submit(doc{name: "first", cpus: 8, storage: []any{"/project"},
				command: sh("echo first >> /project/ran; until [ -e /project/go ]; do sleep 0.05; done; echo end >> /project/ran; exit 9")})
			second := s.submit(doc{name: "second", cpus: 8, storage: []any{"/project"}, command: sh("echo second >> /project/ran; exit 3")})
			s.waitRunning(first)
			eventually(t, "the first job's program has written", func() bool { return exists(filepath.Join(s.project(), "ran")) })
			for _, c := range order {
				both[c].kill()
			}
			// The program ends while nobody looks.
			if err := os.WriteFile(filepath.Join(s.project(), "go"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the first job's program has ended", func() bool { return len(lines(t, filepath.Join(s.project(), "ran"))) >= 2 })
			for _, c := range order {
				both[c].start()
			}
			for id, code := range map[string]int{first: 9, second: 3} {
				d := s.wait(id)
				if diff := cmp.Diff(ended{job.Failed, job.ExitCode, code}, endOf(d)); diff != "" {
					t.Errorf("end (-want +got):\n%s\n%s", diff, describe(d))
				}
			}
			if diff := cmp.Diff([]string{"first", "end", "second"}, lines(t, filepath.Join(s.project(), "ran"))); diff != "" {
				t.Errorf("what ran (-want +got):\n%s", diff)
			}
		})
	}
}

// drill is one kill drill: what was acknowledged and what the dice say.
type drill struct {
	s     *site
	dice  *rand.Rand
	acked map[string]int // job number to the exit code it shall have
	keys  int

	more           []*daemon // further controllers
	address, token string    // of all controllers, and a file with a user's token; empty: by the socket
}

// TestKillDrill kills daemons at random moments while jobs are submitted, run
// and end. Every acknowledged job is there afterwards, ran exactly once, and
// ended with its exit code.
func TestKillDrill(t *testing.T) {
	rounds, seed := number(t, "GBATCH_E2E_ROUNDS", 6), number(t, "GBATCH_E2E_SEED", int(time.Now().UnixNano()%1e9))
	t.Logf("GBATCH_E2E_SEED=%d GBATCH_E2E_ROUNDS=%d", seed, rounds)
	s := newSite(t, siteOptions{nodes: 2})
	d := &drill{s: s, dice: rand.New(rand.NewPCG(uint64(seed), 1)), acked: map[string]int{}}
	for range rounds {
		d.round()
	}
	for _, p := range d.daemons() {
		if !p.running() {
			p.start()
		}
	}
	d.check()
	t.Logf("%d jobs were acknowledged in %d rounds", len(d.acked), rounds)
}

func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

func (d *drill) daemons() []*daemon {
	return append(append([]*daemon{d.s.ctld}, d.more...), d.s.nodes...)
}

// round submits some jobs, kills some daemons at some moment of that, submits
// more to whoever is left, and starts the killed ones in some order.
func (d *drill) round() {
	submitted := make(chan struct{})
	files := d.batch(4)
	go func() { // round waits for it
		defer close(submitted)
		for _, f := range files {
			d.submit(f)
		}
	}()
	d.pause(400)
	victims := d.daemons()
	d.dice.Shuffle(len(victims), func(i, j int) { victims[i], victims[j] = victims[j], victims[i] })
	victims = victims[:1+d.dice.IntN(len(victims))]
	for _, v := range victims {
		v.kill()
		d.pause(60)
	}
	d.pause(300)
	d.dice.Shuffle(len(victims), func(i, j int) { victims[i], victims[j] = victims[j], victims[i] })
	for _, v := range victims {
		v.start()
		d.pause(60)
	}
	<-submitted
}

// pause lets up to so many milliseconds pass: the moment of a kill is the
// point of the drill.
func (d *drill) pause(most int) {
	end := time.Now().Add(time.Duration(d.dice.IntN(most+1)) * time.Millisecond)
	poll(time.Minute, func() bool { return time.Now().After(end) })
}

// work is a job to submit: a file, the key that makes it safe to submit again,
// and the exit code that it will have.
type work struct {
	file, key string
	code      int
}

func (d *drill) batch(n int) []work {
	var out []work
	for range n {
		code, tenths := d.dice.IntN(4)*11, d.dice.IntN(10)
		script := fmt.Sprintf("echo begin >> /project/$GBATCH_JOB_NUMBER; sleep 0.%d; echo end >> /project/$GBATCH_JOB_NUMBER; exit %d", tenths, code)
		d.keys++
		out = append(out, work{d.s.write(doc{name: "drill", cpus: 1 + d.dice.IntN(4), command: sh(script), storage: []any{"/project"}}.json()),
			fmt.Sprintf("drill-%d", d.keys), code})
	}
	return out
}

// submit tries until the job is acknowledged; the key makes that one job.
func (d *drill) submit(w work) {
	var r result
	args := []string{"--timeout", "5s", "--idempotency-key", w.key, w.file}
	if d.address != "" {
		args = append([]string{"--controller", d.address, "--token-file", d.token}, args...)
	}
	ok := poll(patience, func() bool {
		r = d.s.run("gsubmit", args...)
		return r.code == 0
	})
	if !ok {
		d.s.t.Errorf("gsubmit: %v", r)
		return
	}
	d.acked[strings.TrimSpace(r.out)] = w.code
}

// check waits for every acknowledged job and compares.
func (d *drill) check() {
	t := d.s.t
	if len(d.acked) != d.keys {
		t.Errorf("%d jobs were acknowledged for %d submissions", len(d.acked), d.keys)
	}
	for id, code := range d.acked {
		want := ended{job.Failed, job.ExitCode, code}
		if code == 0 {
			want = finished
		}
		detail := d.s.wait(id)
		if diff := cmp.Diff(want, endOf(detail)); diff != "" {
			t.Errorf("end (-want +got):\n%s\n%s", diff, describe(detail))
		}
		if diff := cmp.Diff([]string{"begin", "end"}, lines(t, filepath.Join(d.s.project(), id))); diff != "" {
			t.Errorf("job %s: what ran (-want +got):\n%s\n%s", id, diff, describe(detail))
		}
	}
}
