package fleet

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// trio is three controllers that have all records in common.
type trio struct {
	t     *testing.T
	all   []*controller
	local []*client.Client // at their sockets
}

// newTrio starts one controller, and two that join it.
func newTrio(t *testing.T, nodes int) *trio {
	t.Helper()
	bin, at := buildController(t), freeAddresses(t, 6)
	tr := &trio{t: t}
	for i := range 3 {
		more := fmt.Sprintf("advertise: '%s'\nreplica: {name: c%d, listen: '%s'}\n", strings.Join(at[:3], ","), i, at[3+i]) + unbounded
		c := configured(t, bin, nodes, at[i], more)
		tr.all = append(tr.all, c)
		tr.local = append(tr.local, &client.Client{Address: "unix://" + c.socket()})
		t.Cleanup(tr.local[i].Close)
		if i == 0 {
			if out, err := exec.Command(bin, "init", "--config", c.config()).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			c.start()
			continue
		}
		joined, err := client.AddController(t.Context(), tr.local[0], api.NewController{Name: fmt.Sprint("c", i), Address: at[3+i]})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(joined)
		file := filepath.Join(c.dir, "join")
		if err == nil {
			err = os.WriteFile(file, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(bin, "init", "--config", c.config(), "--join", file).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		c.launch()
	}
	return tr
}

// wholly waits until all take part and have all records, and says which one leads.
func (tr *trio) wholly() (leads int) {
	tr.t.Helper()
	waitWithin(tr.t, 10*patience, "three controllers take part and have all records", func() bool {
		for i, c := range tr.local {
			list, err := client.Controllers(tr.t.Context(), c)
			if err != nil {
				continue
			}
			n := 0
			for _, x := range list.Controllers {
				if x.Counts && x.Answers && x.Behind == 0 {
					n++
				}
			}
			leads = i
			return n == len(tr.all)
		}
		return false
	})
	return leads
}

// fleet has nodes join, and jobs wait.
func (tr *trio) fleet(leads int) *fleet {
	t, local := tr.t, tr.local[leads]
	t.Helper()
	s, err := local.Site(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{t: t, ctld: tr.all[leads], address: s.Address, size: size{nodes: number(t, "NODES", 4), gpus: 2, jobs: number(t, "JOBS", 1000), runs: time.Duration(number(t, "RUN_MS", 500)) * time.Millisecond, apart: true}}
	f.counts.begun, f.counts.heard = map[job.RankID]int{}, map[string]time.Time{}
	secret := func(r api.TokenRequest) string {
		token, err := local.CreateToken(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return token.Secret
	}
	f.user = &client.Client{Address: f.address, Token: secret(api.TokenRequest{Use: api.TokenUser, User: "fleet"}), Timeout: patience, Retry: client.Retry{For: patience}}
	t.Cleanup(f.user.Close)
	join := filepath.Join(f.ctld.dir, "join.token")
	if err := os.WriteFile(join, []byte(secret(api.TokenRequest{Use: api.TokenJoin, Uses: f.nodes})), 0o600); err != nil {
		t.Fatal(err)
	}
	f.begin(join)
	began := time.Now()
	for left := f.jobs; left > 0; left -= api.MaxSubmissions {
		if err := f.submit(min(left, api.MaxSubmissions)); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d jobs were taken, %.0f/s", f.jobs, float64(f.jobs)/time.Since(began).Seconds())
	return f
}

// stray is how long after a controller's end an order that it had sent may still come.
const stray = 20 * time.Millisecond

// TestTakeOver measures how long it takes, after the controller that leads was killed, until another one acknowledges
// a submission and until a job begins.
func TestTakeOver(t *testing.T) {
	if os.Getenv("GBATCH_FLEET_KILLS") == "" {
		t.Skip("SKIPPED: it takes some seconds for each of GBATCH_FLEET_KILLS")
	}
	kills := number(t, "KILLS", 1)
	tr := newTrio(t, number(t, "NODES", 4))
	f := tr.fleet(tr.wholly())
	var submits, starts []time.Duration
	began := time.Now()
	first, submitted := began, f.jobs
	for range kills {
		f.answered(began)
		leads := tr.wholly()
		submitted += f.refill(submitted)
		began = time.Now()
		f.counts.mu.Lock()
		f.counts.after, f.counts.next = began.Add(stray), time.Time{}
		f.counts.mu.Unlock()
		tr.all[leads].kill()
		if _, err := f.user.Submit(t.Context(), &api.SubmitRequest{Job: []byte(document)}, ""); err != nil {
			t.Fatal(err)
		}
		submits = append(submits, time.Since(began))
		starts = append(starts, f.nextStart().Sub(began))
		t.Logf("kill %d: submission %v, start %v", len(starts), submits[len(submits)-1].Round(time.Millisecond), starts[len(starts)-1].Round(time.Millisecond))
		tr.all[leads].launch()
	}
	load, _ := os.ReadFile("/proc/loadavg")
	t.Logf("%d kills beside %d nodes in %v: submission %s; start %s; load %s", kills, f.nodes, time.Since(first).Round(time.Second), spread(submits), spread(starts), load)
	f.counts.mu.Lock()
	defer f.counts.mu.Unlock()
	for id, times := range f.counts.begun {
		if id.Attempt != 1 || times != 1 {
			t.Errorf("%v was begun %d times", id, times)
		}
	}
}

// refill submits as many jobs as have begun of those that were submitted, so that the queue stays as long as it was.
func (f *fleet) refill(submitted int) int {
	f.t.Helper()
	f.counts.mu.Lock()
	n := f.jobs + len(f.counts.begun) - submitted
	f.counts.mu.Unlock()
	if n = min(n, api.MaxSubmissions); n <= 0 {
		return 0
	}
	if err := f.submit(n); err != nil {
		f.t.Fatal(err)
	}
	return n
}

// nextStart waits until the first rank is begun after the time that was noted.
func (f *fleet) nextStart() (at time.Time) {
	f.t.Helper()
	waitWithin(f.t, patience, "a job begins", func() bool {
		f.counts.mu.Lock()
		defer f.counts.mu.Unlock()
		at = f.counts.next
		return !at.IsZero()
	})
	return at
}

// spread is how times lie.
func spread(list []time.Duration) string {
	slices.Sort(list)
	at := func(percent int) time.Duration { return list[(len(list)-1)*percent/100].Round(time.Millisecond) }
	return fmt.Sprintf("50 %% within %v, 90 %% within %v, 99 %% within %v, all within %v", at(50), at(90), at(99), at(100))
}
