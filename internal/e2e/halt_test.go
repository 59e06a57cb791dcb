package e2e

import (
	"os"
	"strings"
	"testing"

	"gbatch/internal/job"
)

// counts is a program that saves how far it is when it is told to halt, goes on
// from there when it is started again, and ends well at twice that.
const counts = `n=0; [ -e /project/saved ] && n=$(cat /project/saved) && to=$((n + 5))
trap 'echo $n > /project/saved; exit 0' USR1
echo "restart $GBATCH_RESTART_COUNT of $GBATCH_INITIAL_JOB_ID from $n"
while [ -z "$to" ] || [ $n -lt $to ]; do n=$((n + 1)); [ $n -eq 3 ] && touch /project/three; sleep 0.1; done
echo "done at $n"`

// TestHaltAndResume: a job that is halted saves its work, a new one goes on from
// it, and who waits for the first, as a command or as a job, waits for that.
func TestHaltAndResume(t *testing.T) {
	s := newSite(t, siteOptions{})
	id := s.submit(doc{name: "train", command: sh(counts), storage: []any{"/project"}, scheduling: map[string]any{"restartable": true}, gbatch: map[string]any{"haltSignal": "USR1", "haltGrace": "20 s"}})
	after := strings.TrimSpace(s.must("gsubmit", "-d", "afterok:"+id, s.write(doc{name: "after", command: sh("cat /project/saved"), storage: []any{"/project"}}.json())))
	eventually(t, "the program to have done something", func() bool {
		_, err := os.Stat(s.project() + "/three")
		return err == nil
	})
	if r := s.run("gcancel", "--halt", id); r.code != 0 || !strings.Contains(r.out, "a new job will continue it") {
		t.Fatalf("halt: %v", r)
	}
	r := s.run("gqueue", "wait", id)
	if r.code != 0 || !strings.Contains(r.err, "job 3 continues it") {
		t.Errorf("wait for a halted job: %v", r)
	}
	first, second := s.job(id), s.job("3")
	if first.State != job.Halted || first.Successor != 3 || second.State != job.Finished || second.Restart == nil {
		t.Errorf("job 1 is %s, job 3 is %s (%+v)", first.State, second.State, second.Restart)
	}
	saved, err := os.ReadFile(s.project() + "/saved")
	if err != nil {
		t.Fatal(err)
	}
	log := s.must("glog", "3")
	if n := strings.TrimSpace(string(saved)); n == "0" || !strings.Contains(log, "restart 1 of "+first.UUID+" from "+n+"\n") {
		t.Errorf("saved %q, then\n%s", saved, log)
	}
	if d := s.wait(after); d.State != job.Finished || d.Started.Before(second.Ended) {
		t.Errorf("the job after it is %s, started %v; the one that it waited for ended %v", d.State, d.Started, second.Ended)
	}
	if show := s.must("gqueue", "show", id); !strings.Contains(show, "sent USR1") {
		t.Errorf("the timeline is\n%s", show)
	}
}

// TestSignalAndRequeue: a running program hears a signal and goes on, and a
// requeue begins it anew.
func TestSignalAndRequeue(t *testing.T) {
	s := newSite(t, siteOptions{ctldConfig: quick})
	id := s.submit(doc{command: sh(`trap 'echo heard' USR2; echo "try $GBATCH_ATTEMPT"; [ $GBATCH_ATTEMPT = 2 ] && exit 0; while :; do sleep 0.1; done`)})
	s.waitRunning(id)
	eventually(t, "the program to begin", func() bool { return strings.Contains(s.must("glog", id), "try 1") })
	s.must("gcancel", "--signal", "SIGUSR2", id)
	eventually(t, "the program to hear the signal", func() bool { return strings.Contains(s.must("glog", id), "heard") })
	s.must("gcancel", "--requeue", id)
	if d := s.wait(id); d.State != job.Finished || len(d.Attempts) != 2 {
		t.Errorf("it is %s after %d attempts", d.State, len(d.Attempts))
	}
	if r := s.run("gcancel", "--requeue", id); r.code == 0 || !strings.Contains(r.err, "submit it as a new one") {
		t.Errorf("requeue of an ended job: %v", r)
	}
}

// gpulabRestart is a program in the manner of GPULab's own users: it says how often it was
// started before, answers USR1 with 123, and goes on from what it saved.
const gpulabRestart = `trap 'echo saved >/project/saved; kill $work; exit 123' USR1
echo "$GPULAB_RESTART_COUNT $GPULAB_RESTART_INITIAL_JOB_ID"
if [ "$GPULAB_RESTART_COUNT" -lt 1 ]; then
  sleep 1000 & work=$!
  touch /project/began
  wait
else
  cat /project/saved
fi`

// TestGPULabRestart: a file that says nothing of gbatch is halted and goes on as
// GPULab does it, with numbers in quotes and what else its own parser takes.
func TestGPULabRestart(t *testing.T) {
	s := newSite(t, siteOptions{})
	d := doc{name: "train", command: sh(gpulabRestart), storage: []any{map[string]any{"containerPath": "/project", "sizeGb": "5"}}, scheduling: map[string]any{"restartable": true}}
	id := s.submit(d)
	eventually(t, "the program to have begun", func() bool {
		_, err := os.Stat(s.project() + "/began")
		return err == nil
	})
	s.waitRunning(id) // its program is ahead of what the controller has heard
	s.must("gcancel", "--halt", id)
	second := s.wait("2")
	first := s.job(id)
	if first.State != job.Halted || second.State != job.Finished {
		t.Errorf("job 1 is %s, job 2 is %s", first.State, second.State)
	}
	if want, got := "0 "+first.UUID+"\n1 "+first.UUID+"\nsaved\n", s.must("glog", id)+s.must("glog", "2"); got != want {
		t.Errorf("they wrote %q, want %q", got, want)
	}
}
