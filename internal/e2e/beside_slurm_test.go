package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// besideEnv names the file for the table of TestBesideSlurm; without it, it is not run.
const besideEnv = "GBATCH_BENCH_SLURM"

// besideRounds are how often each line is measured; both take turns in each.
const besideRounds = 3

// competitor is one batch system as the comparison needs it.
type competitor struct {
	held, ready, array []string // commands that submit one job that stays on hold, one `true`, an array of them
	wait               []string // submits a `true` and returns when the client knows its end
	list, listJSON     []string
	cancel             []string
	env                []string
	left               func() int    // jobs that are not over
	trouble            func() string // what its daemons have said
}

// TestBesideSlurm measures the same work by gbatch and by Slurm, in turns on this
// machine. It asserts nothing of the times: scripts/bench-slurm prints them.
func TestBesideSlurm(t *testing.T) {
	table := os.Getenv(besideEnv)
	if table == "" {
		t.Skip("a comparison, not a test: make bench-slurm")
	}
	jobs := besideJobs(t)
	s := newSite(t, siteOptions{made: besideCores})
	both := []*competitor{startSlurm(t, jobs), besideGbatch(s, jobs)}
	out, err := os.Create(table)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	fmt.Fprintln(out, "| what | Slurm | gbatch | times as good as Slurm (worst to best round) |\n|---|---|---|---|")
	for _, m := range besideLines(jobs) {
		got := [2][]float64{}
		var ratios []float64
		for range besideRounds {
			for i, c := range both {
				m.do(t, c, func(v float64) { got[i] = append(got[i], v) })
				m.after(t, c)
			}
			r := got[1][len(got[1])-1] / got[0][len(got[0])-1]
			if m.less {
				r = 1 / r
			}
			ratios = append(ratios, r)
		}
		fmt.Fprintf(out, "| %s | %s | %s | %.2f (%.2f to %.2f) |\n", m.name, fmt.Sprintf(m.format, median(got[0])), fmt.Sprintf(m.format, median(got[1])), median(ratios), slices.Min(ratios), slices.Max(ratios))
	}
}

// besideJobs is how many jobs a line has.
func besideJobs(t *testing.T) int {
	n, err := strconv.Atoi(os.Getenv("GBATCH_BENCH_JOBS"))
	if err != nil || n < 40 {
		t.Fatalf("GBATCH_BENCH_JOBS=%q: give a number from 40 on", os.Getenv("GBATCH_BENCH_JOBS"))
	}
	return n
}

// besideLine is one line of the table.
type besideLine struct {
	name, format string
	less         bool // a smaller figure is better
	do           func(*testing.T, *competitor, func(float64))
	after        func(*testing.T, *competitor)
}

func besideLines(jobs int) []besideLine {
	rate := func(n int, f func()) float64 { return float64(n) / besideTime(f).Seconds() }
	drained := func(t *testing.T, c *competitor) { c.drain(t) }
	emptied := func(t *testing.T, c *competitor) { c.must(t, c.cancel); c.drain(t) }
	fill := func(t *testing.T, c *competitor) { c.loops(t, 4, jobs, c.held) }
	submissions := func(loops int) func(*testing.T, *competitor, func(float64)) {
		return func(t *testing.T, c *competitor, is func(float64)) {
			is(rate(jobs/4, func() { c.loops(t, loops, jobs/4, c.held) }))
		}
	}
	looks := func(of func(*competitor) []string) func(*testing.T, *competitor, func(float64)) {
		return func(t *testing.T, c *competitor, is func(float64)) {
			fill(t, c)
			is(besideMedian(5, func() { c.must(t, of(c)) }))
		}
	}
	return []besideLine{
		{"submissions by its command, one after the other", "%.0f/s", false, submissions(1), emptied},
		{"the same, 4 loops at once", "%.0f/s", false, submissions(4), emptied},
		{fmt.Sprintf("%d x `true`, 4 submitting loops, to the last end", jobs), "%.1f/s", false, func(t *testing.T, c *competitor, is func(float64)) {
			is(rate(jobs, func() { c.loops(t, 4, jobs, c.ready); c.drain(t) }))
		}, drained},
		{fmt.Sprintf("array of %d x `true`", jobs), "%.1f/s", false, func(t *testing.T, c *competitor, is func(float64)) {
			is(rate(jobs, func() { c.must(t, c.array); c.drain(t) }))
		}, drained},
		{"submission of one `true` to its end at the client", "%.0f ms", true, func(t *testing.T, c *competitor, is func(float64)) {
			is(besideMedian(7, func() { c.must(t, c.wait) }))
		}, drained},
		{fmt.Sprintf("list of %d", jobs), "%.0f ms", true, looks(func(c *competitor) []string { return c.list }), emptied},
		{"the same as JSON", "%.0f ms", true, looks(func(c *competitor) []string { return c.listJSON }), emptied},
		{fmt.Sprintf("cancel %d", jobs), "%.0f ms", true, func(t *testing.T, c *competitor, is func(float64)) {
			fill(t, c)
			is(besideTime(func() { c.must(t, c.cancel) }).Seconds() * 1e3)
		}, drained},
	}
}

func besideTime(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

// besideMedian is that of some runs, in ms.
func besideMedian(runs int, f func()) float64 {
	var list []float64
	for range runs {
		list = append(list, besideTime(f).Seconds()*1e3)
	}
	return median(list)
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

// must runs a command that has to succeed.
func (c *competitor) must(t *testing.T, args []string) string {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(cleanEnv(), c.env...)
	r := execute(cmd)
	if r.code != 0 {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), r, c.trouble())
	}
	return r.out
}

// loops runs a command n times, by so many at a time.
func (c *competitor) loops(t *testing.T, at, n int, args []string) {
	var wg sync.WaitGroup
	for i := range at {
		wg.Go(func() { // ends with its share
			share := n/at + min(1, max(0, n%at-i))
			cmd := exec.Command("sh", slices.Concat([]string{"-c", `i=0; while [ $i -lt $0 ]; do "$@" >/dev/null || exit 1; i=$((i+1)); done`, strconv.Itoa(share)}, args)...)
			cmd.Env = append(cleanEnv(), c.env...)
			if r := execute(cmd); r.code != 0 {
				t.Errorf("%s: %v", strings.Join(args, " "), r)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// drain waits until all jobs are over.
func (c *competitor) drain(t *testing.T) {
	t.Helper()
	look := time.NewTicker(besideLook)
	defer look.Stop()
	for end := time.Now().Add(10 * time.Minute); c.left() > 0; <-look.C {
		if time.Now().After(end) {
			t.Fatalf("%d jobs are not over after 10 minutes\n%s", c.left(), c.trouble())
		}
	}
}

// besideLook is how often jobs are counted: seldom enough to cost neither anything.
const besideLook = 200 * time.Millisecond
