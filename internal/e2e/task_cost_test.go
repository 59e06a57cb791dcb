package e2e

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
)

// taskCostEnv is how many jobs a line of TestTaskCost has; without it, it is not run.
const taskCostEnv = "GBATCH_BENCH_TASKS"

// TestTaskCost measures what short jobs cost that have a container each, as an array and submitted by
// themselves: how many a second, processor time, context switches of the machine, exchanges of node and controller, and how long cores are
// idle from the end of one's program to the begin of the next one's. It asserts nothing: make bench-tasks prints it.
func TestTaskCost(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv(taskCostEnv))
	if err != nil {
		t.Skip("a measurement, not a test: make bench-tasks")
	}
	s := newSite(t, siteOptions{made: besideCores})
	s.wait(s.submit(doc{command: []string{"true"}})) // the image is here then
	fmt.Println("| what | a second | ms of processor time: gctld, gnoded, shims and programs | context switches of the machine | exchanges of node and controller | ms from an end to the next begin on these cores: median, 90 % |\n|---|---|---|---|---|---|")
	for i, command := range [][]string{{"true"}, {"sleep", "0.2"}} {
		jobs := n
		if command[0] == "sleep" {
			jobs = max(n/4, 8)
		}
		c := besideGbatch(s, jobs)
		one := s.write(doc{name: fmt.Sprint("one", i), command: command}.json())
		array := s.write(doc{name: fmt.Sprint("array", i), command: command, gbatch: map[string]any{"tasks": fmt.Sprint("1-", jobs)}}.json())
		c.ready[len(c.ready)-1], c.array[len(c.array)-1] = one, array
		what := strings.Join(command, " ")
		fmt.Printf("| array of %d x `%s` %s", jobs, what, s.taskCost(c, fmt.Sprint("array", i), jobs, func() { c.must(t, c.array) }))
		fmt.Printf("| %d x `%s`, 4 submitting loops %s", jobs, what, s.taskCost(c, fmt.Sprint("one", i), jobs, func() { c.loops(t, 4, jobs, c.ready) }))
	}
}

// taskCost is the rest of a line, of jobs by a name that submit submits.
func (s *site) taskCost(c *competitor, name string, jobs int, submit func()) string {
	t := s.t
	t.Helper()
	ctld, node, switches, exchanges := usage(t, s.ctld), usage(t, s.nodes[0]), contextSwitches(t), s.exchanges()
	began := time.Now()
	submit()
	c.drain(t)
	took := time.Since(began)
	switches, exchanges = contextSwitches(t)-switches, s.exchanges()-exchanges
	eventually(t, "shims have ended", func() bool { return len(s.shims()) == 0 }) // their time is the node's children's then
	ctld, node = usage(t, s.ctld).since(ctld), usage(t, s.nodes[0]).since(node)
	each := func(ticks int64) float64 { return float64(ticks) * 10 / float64(jobs) } // the kernel tells hundredths of a second
	median, most := s.gaps(name)
	return fmt.Sprintf("| %.1f | %.2f, %.2f, %.2f | %d | %.2f | %d, %d |\n", float64(jobs)/took.Seconds(), each(ctld.own), each(node.own), each(node.children), switches/int64(jobs), exchanges/float64(jobs), median, most)
}

// exchanges are those of nodes that were answered.
func (s *site) exchanges() (n float64) {
	for name, v := range figures(s.t, "unix", s.socket()) {
		if strings.HasPrefix(name, "gctld_http_requests_total{") && strings.Contains(name, api.PathNodeSync) {
			n += v
		}
	}
	return n
}

// gaps are for how many ms cores were idle between two jobs of a name: the median, and what nine of ten are within.
func (s *site) gaps(name string) (median, most int64) {
	list, err := s.api.Jobs(s.t.Context(), client.JobFilter{All: true, Name: name, Limit: 10_000})
	if err != nil {
		s.t.Fatal(err)
	}
	type span struct{ begin, end int64 }
	on := map[string][]span{}
	for _, j := range list.Jobs {
		d := s.job(fmt.Sprint(j.Number))
		if len(d.Attempts) == 0 || len(d.Attempts[len(d.Attempts)-1].Ranks) != 1 { // an array
			continue
		}
		if r := d.Attempts[len(d.Attempts)-1].Ranks[0]; r.Exit != nil {
			on[r.Cores] = append(on[r.Cores], span{r.Exit.StartedMS, r.Exit.EndedMS})
		}
	}
	var all []int64
	for _, l := range on {
		slices.SortFunc(l, func(a, b span) int { return int(a.begin - b.begin) })
		for i := 1; i < len(l); i++ {
			all = append(all, l[i].begin-l[i-1].end)
		}
	}
	if len(all) == 0 {
		return 0, 0
	}
	slices.Sort(all)
	return all[len(all)/2], all[len(all)*9/10]
}

// contextSwitches are those of the machine since it began.
func contextSwitches(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(line, "ctxt "); ok {
			v, err := strconv.ParseInt(strings.TrimSpace(n), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Fatal("/proc/stat has no ctxt")
	return 0
}
