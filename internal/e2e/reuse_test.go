package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gbatch/internal/job"
)

// ranTasks are the lines that tasks wrote, in the order in which they did.
func (s *site) ranTasks() (lines [][]string) {
	b, _ := os.ReadFile(filepath.Join(s.project(), "ran"))
	for line := range strings.Lines(string(b)) {
		lines = append(lines, strings.Fields(line))
	}
	return lines
}

// TestReuse: tasks of an array that asks for it run one after the other in few containers,
// each with a record, a log and an exit of its own, and find nothing of those before.
func TestReuse(t *testing.T) {
	s := newSite(t, siteOptions{})
	const tasks = 40
	id := s.submit(doc{name: "reuse", storage: []any{"/project"}, gbatch: map[string]any{"tasks": map[string]any{"indexes": fmt.Sprintf("0-%d", tasks-1), "reuse": true}, "retry": map[string]any{"limit": 1, "backoff": "1 s"}},
		command: sh(`echo task $GBATCH_TASK; echo $GBATCH_TASK $GBATCH_ATTEMPT $(readlink /proc/self/ns/mnt) $(ls -A /tmp | wc -l) $(ls /dev/shm | wc -l) $(grep -l sleep /proc/[0-9]*/comm | wc -l) >> /project/ran
			touch /tmp/x /dev/shm/x; sleep 1000 >/dev/null 2>&1 & cd /; [ $GBATCH_TASK != 7 ]`)})
	if d := s.wait(id); d.State != job.Failed || job.Reason(d.Reason) != job.FailedIndexes {
		t.Fatalf("the array:\n%s", describe(d))
	}
	containers, ran := map[string]int{}, map[string]int{}
	for _, f := range s.ranTasks() {
		ran[f[0]]++ // whichever attempt it is: one that was given ahead may have been taken back
		containers[f[2]]++
		if got := strings.Join(f[3:], " "); got != "0 0 0" {
			t.Errorf("task %s found files in /tmp, in /dev/shm, processes: %s", f[0], got)
		}
	}
	if len(containers) > 20 { // two at a time, and those that came before the first had ended
		t.Errorf("%d containers for %d tasks: %v", len(containers), tasks, containers)
	}
	for i := range tasks {
		want := 1
		if i == 7 {
			want = 2 // it is tried again
		}
		if n := ran[fmt.Sprint(i)]; n != want {
			t.Errorf("task %d ran %d times, want %d", i, n, want)
		}
		name := fmt.Sprintf("%s_%d", id, i)
		if log := s.must("glog", name); i != 7 && log != fmt.Sprintf("task %d\n", i) {
			t.Errorf("the log of %s: %q", name, log)
		}
	}
	if r := s.run("gqueue", "show", id+"_7"); !strings.Contains(r.out, "EXIT_CODE") {
		t.Errorf("the task that fails: %v", r)
	}
}

// TestReuseEnds: what ends a task, or what it leaves behind, is its own matter: the others
// run, and find nothing of it.
func TestReuseEnds(t *testing.T) {
	s := newSite(t, siteOptions{})
	id := s.submit(doc{name: "reuse", storage: []any{"/project"},
		gbatch: map[string]any{"tasks": map[string]any{"indexes": "0-11", "reuse": true}},
		command: sh(`echo $GBATCH_TASK $(find /tmp /dev/shm -mindepth 1 | wc -l) $(grep -l sleep /proc/[0-9]*/comm | wc -l) $(pwd) ${LEFT-none} >> /project/ran
			export LEFT=1; cd /; echo task $GBATCH_TASK
			case $GBATCH_TASK in
			2) sleep 1000;; # is cancelled
			4) dd if=/dev/zero of=/tmp/full bs=1M count=100 2>/dev/null; chmod 0 /tmp; (trap '' TERM HUP INT; setsid sleep 1000 </dev/null >/dev/null 2>&1 &) ;;
			5) kill -9 1; kill -9 $$;; # the first process does not hear it
			6) rm -rf /bin/ls; ln -s /bin/busybox /bin/ls;;
			esac`)})
	eventually(t, "task 2 runs", func() bool { return strings.Contains(s.run("glog", id+"_2").out, "task 2") })
	s.must("gcancel", id+"_2")
	if d := s.wait(id); d.State != job.Failed {
		t.Errorf("the array:\n%s", describe(d))
	}
	ran := map[string]int{}
	for _, f := range s.ranTasks() {
		if ran[f[0]]++; strings.Join(f[1:], " ") != "0 0 / none" {
			t.Errorf("task %s found files in /tmp and /dev/shm, processes, a directory, a variable: %s", f[0], f[1:])
		}
	}
	for i := range 12 {
		name, want := fmt.Sprintf("%s_%d", id, i), "FINISHED"
		switch i {
		case 2:
			want = "CANCELLED"
		case 5:
			want = "SIGNAL"
		}
		if r := s.run("gqueue", "show", name); !strings.Contains(r.out, want) {
			t.Errorf("task %d, want %s:\n%s", i, want, r.out)
		}
		if log := s.must("glog", name); !strings.HasPrefix(log, fmt.Sprintf("task %d\n", i)) {
			t.Errorf("the log of %s: %q", name, log)
		}
		if n := ran[fmt.Sprint(i)]; n != 1 {
			t.Errorf("task %d ran %d times", i, n)
		}
	}
}

// TestReuseAhead: tasks that their node was given ahead can be held, and make room for a job of
// somebody else's at once; none begins twice or is left out.
func TestReuseAhead(t *testing.T) {
	s := newSite(t, siteOptions{})
	const tasks = 150
	id := s.submit(doc{name: "ahead", storage: []any{"/project"}, gbatch: map[string]any{"tasks": map[string]any{"indexes": fmt.Sprintf("0-%d", tasks-1), "reuse": true}},
		command: sh(`echo $GBATCH_TASK $GBATCH_ATTEMPT >> /project/ran; sleep 0.02`)})
	eventually(t, "a task is given ahead", func() bool {
		return strings.Contains(s.run("gqueue", "show", id+"_60").out, "ahead, behind") || len(s.ranTasks()) > 60
	})
	other := s.submit(doc{name: "other", cpus: 2, command: []string{"true"}})
	if d := s.wait(other); d.State != job.Finished {
		t.Errorf("the other job:\n%s", describe(d))
	}
	if n := len(s.ranTasks()); n == tasks {
		t.Log("all tasks ran before the other job: nothing was shown")
	}
	if r := s.run("gcancel", "--hold", id); r.code == 0 {
		eventually(t, "nothing of the array runs", func() bool {
			return !strings.Contains(s.run("gqueue").out, "ASSIGNED") && !strings.Contains(s.run("gqueue").out, "RUNNING")
		})
		s.run("gcancel", "--release", id)
	}
	if d := s.wait(id); d.State != job.Finished {
		t.Errorf("the array:\n%s", describe(d))
	}
	ran := map[string]int{}
	for _, f := range s.ranTasks() {
		ran[f[0]]++
	}
	for i := range tasks {
		if n := ran[fmt.Sprint(i)]; n != 1 {
			t.Errorf("task %d began %d times", i, n)
		}
	}
}

// TestReuseOverKills kills the daemons and the shims while tasks run one after the other in
// their containers: none runs twice, and each that was not in a shim's hands runs to its end.
func TestReuseOverKills(t *testing.T) {
	s := newSite(t, siteOptions{})
	const tasks = 60
	id := s.submit(doc{name: "reuse", storage: []any{"/project"}, gbatch: map[string]any{"tasks": map[string]any{"indexes": fmt.Sprintf("0-%d", tasks-1), "reuse": true}},
		command: sh(`echo $GBATCH_TASK $GBATCH_ATTEMPT >> /project/ran; sleep 0.2; echo $GBATCH_TASK >> /project/ended`)})
	reach := func(n int) {
		t.Helper()
		eventually(t, fmt.Sprintf("%d tasks have begun", n), func() bool { return len(s.ranTasks()) >= n })
	}
	reach(6)
	s.nodes[0].kill()
	s.nodes[0].start()
	reach(14)
	s.ctld.kill()
	s.ctld.start()
	reach(22)
	s.nodes[0].kill()
	s.ctld.kill()
	s.nodes[0].start()
	s.ctld.start()
	reach(30)
	lost := s.killShims()
	reach(min(tasks-lost, 40))
	s.wait(id)
	begun := map[string]int{}
	for _, f := range s.ranTasks() {
		begun[strings.Join(f, "/")]++
	}
	b, _ := os.ReadFile(filepath.Join(s.project(), "ended"))
	ended := strings.Fields(string(b))
	for i := range tasks {
		n := 0
		for key, times := range begun {
			if strings.HasPrefix(key, fmt.Sprint(i)+"/") {
				n++
				if times != 1 {
					t.Errorf("attempt %s began %d times", key, times)
				}
			}
		}
		if n == 0 {
			r := s.run("gqueue", "show", fmt.Sprintf("%s_%d", id, i))
			if !strings.Contains(r.out, "NODE_FAIL") {
				t.Errorf("task %d never ran: %v", i, r)
			}
		}
		if slices.Index(ended, fmt.Sprint(i)) < 0 {
			lost--
		}
	}
	if lost < 0 {
		t.Errorf("%d tasks more than were killed did not come to their end", -lost)
	}
}

// killShims kills all shims of the site's first node, and says how many that were.
func (s *site) killShims() (count int) {
	for _, pid := range s.shims() {
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			count++
		}
	}
	return count
}

// shims are the site's that live.
func (s *site) shims() (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		args, _ := os.ReadFile(dir + "/cmdline")
		var pid int
		if words := strings.Split(string(args), "\x00"); len(words) > 2 && words[1] == "shim" && strings.HasPrefix(words[2], s.dir) {
			if fmt.Sscanf(dir, "/proc/%d", &pid); pid > 0 {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
