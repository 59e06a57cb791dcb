package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
)

// TestArrayOverKills kills both daemons in the middle of an array: each task
// runs once, and none is forgotten.
func TestArrayOverKills(t *testing.T) {
	s := newSite(t, siteOptions{})
	const tasks = 24
	id := s.submit(doc{name: "many", storage: []any{"/project"}, gbatch: map[string]any{"tasks": fmt.Sprintf("0-%d%%6", tasks-1)},
		command: sh(`echo $GBATCH_TASK >> /project/ran; while [ ! -e /project/go ]; do sleep 0.05; done`)})
	ran := func() []string {
		b, err := os.ReadFile(filepath.Join(s.project(), "ran"))
		if err != nil {
			return nil
		}
		return strings.Fields(string(b))
	}
	eventually(t, "six tasks run", func() bool { return len(ran()) == 6 })
	s.ctld.kill()
	s.nodes[0].kill()
	s.inProject("go", "")
	s.ctld.start()
	s.nodes[0].start()
	eventually(t, "more tasks have begun", func() bool { return len(ran()) > 8 })
	s.ctld.kill()
	s.ctld.start()
	if d := s.wait(id); d.State != job.Finished {
		t.Fatalf("the array:\n%s", describe(d))
	}
	got := ran()
	slices.Sort(got)
	var want []string
	for i := range tasks {
		want = append(want, fmt.Sprint(i))
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tasks that ran (-want +got):\n%s", diff)
	}
	if r := s.run("gqueue", "show", fmt.Sprintf("%s_%d", id, tasks-1)); r.code != 0 || !strings.Contains(r.out, "FINISHED") {
		t.Errorf("the last task: %v", r)
	}
}

// TestRetries: one that succeeds at its third try, and a code that ends all tries.
func TestRetries(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t, siteOptions{})
	retried := doc{name: "third", command: sh(`echo try $GBATCH_ATTEMPT; [ $GBATCH_ATTEMPT = 3 ]`), gbatch: map[string]any{
		"retry": map[string]any{"limit": 3, "backoff": "1 s"}}}
	third := s.submit(retried)
	hopeless := s.submit(doc{name: "hopeless", command: sh("exit 42"), gbatch: map[string]any{
		"retry": map[string]any{"limit": 3, "rules": []any{map[string]any{"exitCodes": []int{42}, "action": "fail-job"}}}}})
	if d := s.wait(hopeless); d.State != job.Failed || *d.ExitCode != 42 || len(d.Attempts) != 1 {
		t.Errorf("a code that ends all tries:\n%s", describe(d))
	}
	if d := s.wait(third); d.State != job.Finished || len(d.Attempts) != 3 {
		t.Errorf("the third try:\n%s", describe(d))
	}
	if r := s.run("gsubmit", "--follow", s.write(retried.json())); r.code != 0 || r.out != "try 1\ntry 2\ntry 3\n" {
		t.Errorf("all tries, followed: %v", r)
	}
	for try, want := range map[string]string{"1": "try 1\n", "2": "try 2\n", "3": "try 3\n"} {
		if out := s.must("glog", "--try", try, third); out != want {
			t.Errorf("glog --try %s: %q", try, out)
		}
	}
	if out := s.must("glog", third); out != "try 3\n" {
		t.Errorf("glog of no try: %q", out)
	}
	if r := s.run("glog", "--try", "4", third); r.code != 1 || !strings.Contains(r.err, "has not begun its try 4: it had 3") {
		t.Errorf("a try that never was: %v", r)
	}
	if r := s.run("gsubmit", "--wait", s.write(doc{command: sh("exit 7"), gbatch: map[string]any{"tasks": 2}}.json())); r.code == 0 {
		t.Errorf("waiting for an array that fails: %v", r)
	}
}
