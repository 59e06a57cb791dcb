package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gbatch/internal/client"
)

// reuseCostEnv is how many tasks TestReuseCost runs; without it, it is not run.
const reuseCostEnv = "GBATCH_BENCH_REUSE"

// TestReuseCost measures what a task costs that runs in a container of others, one of `true` and one
// that prints, in processor time of all that takes part. It asserts nothing: make bench-reuse prints it.
func TestReuseCost(t *testing.T) {
	tasks, err := strconv.Atoi(os.Getenv(reuseCostEnv))
	if err != nil {
		t.Skip("a measurement, not a test: make bench-reuse")
	}
	s := newSite(t, siteOptions{made: besideCores})
	array := func(n int) map[string]any {
		return map[string]any{"tasks": map[string]any{"indexes": fmt.Sprint("1-", n), "reuse": true}}
	}
	drain := func(what string, none func() bool) {
		look := time.NewTicker(besideLook / 4)
		defer look.Stop()
		for end := time.Now().Add(30 * time.Minute); !none(); <-look.C {
			if time.Now().After(end) {
				t.Fatalf("%s after half an hour\n%s%s", what, fileEnd(s.ctld.log), fileEnd(s.nodes[0].log))
			}
		}
	}
	jobs := func() bool {
		list, err := s.api.Jobs(t.Context(), client.JobFilter{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Jobs) == 0
	}
	s.submit(doc{command: []string{"true"}, gbatch: array(4)}) // the image is here then
	drain("jobs are not over", jobs)
	drain("shims live", func() bool { return len(s.shims()) == 0 })
	for _, command := range [][]string{{"true"}, {"echo", "a line"}} {
		ctld, node := usage(t, s.ctld), usage(t, s.nodes[0])
		began := time.Now()
		s.submit(doc{command: command, gbatch: array(tasks)})
		drain("jobs are not over", jobs)
		took := time.Since(began)
		for _, pid := range s.shims() { // their time is the node's children's when they are gone
			drain("shims live", func() bool { return syscall.Kill(pid, 0) != nil })
		}
		ctld, node = usage(t, s.ctld).since(ctld), usage(t, s.nodes[0]).since(node)
		each := func(ticks int64) float64 { return float64(ticks) * 10 / float64(tasks) } // ms; the kernel tells hundredths of a second
		fmt.Printf("%d tasks of %s, %.1f/s; ms of processor time a task: gctld %.2f, gnoded %.2f, shims and programs %.2f, together %.2f; MiB: gctld %d, gnoded %d\n", tasks, command[0], float64(tasks)/took.Seconds(),
			each(ctld.own), each(node.own), each(node.children), each(ctld.own+node.own+node.children), ctld.rss>>20, node.rss>>20)
	}
}

// used is what a daemon has used: processor time in ticks, its own and that of children
// that have ended, and memory in bytes.
type used struct{ own, children, rss int64 }

func (u used) since(before used) used {
	return used{u.own - before.own, u.children - before.children, u.rss}
}

func usage(t *testing.T, d *daemon) used {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+2:])) // from the third on
	n := func(i int) int64 {
		v, err := strconv.ParseInt(f[i-3], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	return used{n(14) + n(15), n(16) + n(17), n(24) * int64(os.Getpagesize())}
}
