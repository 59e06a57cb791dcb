package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"gbatch/internal/job"
)

// TestHello is the first thing that a user does.
func TestHello(t *testing.T) {
	s := newSite(t, siteOptions{})
	b, err := os.ReadFile("../../examples/hello.json")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("127.0.0.1:5055/demo/hello:latest", image, `"gpus": 1`, `"gpus": 0`).Replace(string(b))
	r := s.run("gsubmit", "--follow", s.write(text))
	if r.code != 0 || r.out != "Hello World!\n" {
		t.Errorf("gsubmit --follow: %v", r)
	}
	if out := s.must("glog", "1"); out != "Hello World!\n" {
		t.Errorf("glog: %q", out)
	}
	show := s.must("gqueue", "show", "1")
	for _, want := range []string{"HelloWorld", "FINISHED", image, s.nodeName(0)} {
		if !strings.Contains(show, want) {
			t.Errorf("gqueue show has no %q:\n%s", want, show)
		}
	}
	if out := s.must("gqueue", "-a"); !strings.Contains(out, "HelloWorld") {
		t.Errorf("gqueue -a does not list the job:\n%s", out)
	}
	if out := s.must("ginfo"); !strings.Contains(out, s.nodeName(0)) {
		t.Errorf("ginfo does not list the node:\n%s", out)
	}
	if r := s.run("gqueue", "wait", "1"); r.code != 0 {
		t.Errorf("gqueue wait: %v", r)
	}
}

// TestEnvironment compares what a job sees with what GPULab promises.
func TestEnvironment(t *testing.T) {
	s := newSite(t, siteOptions{})
	id := s.submit(doc{name: "env", cpus: 2, gb: 3, command: []string{"env"}, env: map[string]string{"MINE": "two words", "EMPTY": ""}})
	d := s.wait(id)
	if diff := cmp.Diff(finished, endOf(d)); diff != "" {
		t.Fatalf("end (-want +got):\n%s", diff)
	}
	got := map[string]string{}
	for line := range strings.Lines(s.must("glog", id)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		got[name] = value
	}
	for name, want := range map[string]string{
		"GPULAB_JOB_ID": d.UUID, "GPULAB_PROJECT": "default", "GPULAB_USERNAME": "root", "GPULAB_CLUSTER_ID": "1",
		"GPULAB_SLAVE_HOSTNAME": s.nodeName(0), "GPULAB_MEM_RESERVED": "3072m", "GPULAB_GPUS_RESERVED": "",
		"GBATCH_JOB_NUMBER": id, "GBATCH_NUM_CPUS": "2", "GBATCH_ATTEMPT": "1", "SLURM_JOB_ID": id,
		"MINE": "two words", "EMPTY": "",
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %q (set: %v), want %q", name, v, ok, want)
		}
	}
	for _, name := range []string{"GPULAB_CPUS_RESERVED", "GPULAB_SLAVE_DNSNAME", "GPULAB_SLAVE_INSTANCE_ID", "GPULAB_SLAVE_PID", "GPULAB_VERSION", "GPULAB_WORKER_ID"} {
		if got[name] == "" {
			t.Errorf("%s is not set", name)
		}
	}
}

// TestEnds tells exit codes, signals and the memory limit apart, and that
// gsubmit --wait passes on what the program said.
func TestEnds(t *testing.T) {
	s := newSite(t, siteOptions{})
	for name, tc := range map[string]struct {
		command any
		want    ended
		exit    int // of gsubmit --wait
		text    string
	}{
		"good":               {sh("exit 0"), finished, 0, ""},
		"code":               {sh("exit 7"), ended{job.Failed, job.ExitCode, 7}, 7, "exit code 7"},
		"code_137_is_no_oom": {sh("exit 137"), ended{job.Failed, job.ExitCode, 137}, 137, "exit code 137"},
		"memory":             {[]string{"tail", "/dev/zero"}, ended{job.Failed, job.OOM, 137}, 137, "out of memory"},
		"no_such_command":    {[]string{"/opt/train.sh"}, ended{job.Failed, job.BadSpec, 127}, 125, `command "/opt/train.sh" is not in the image`},
		"not_executable":     {[]string{"/etc/passwd"}, ended{job.Failed, job.BadSpec, 126}, 125, `command "/etc/passwd" is not executable`},
	} {
		t.Run(name, func(t *testing.T) {
			r := s.run("gsubmit", "--wait", "--ids", s.write(doc{name: name, command: tc.command}.json()))
			d := s.wait(strings.TrimSpace(strings.SplitN(r.out, "\n", 2)[0]))
			if diff := cmp.Diff(tc.want, endOf(d)); diff != "" {
				t.Errorf("end (-want +got):\n%s", diff)
			}
			if r.code != tc.exit {
				t.Errorf("gsubmit --wait: %v; want exit code %d", r, tc.exit)
			}
			if !strings.Contains(d.ReasonText, tc.text) {
				t.Errorf("reason is %q, want something with %q", d.ReasonText, tc.text)
			}
		})
	}
	s.waitNodes("up", 1)
}

// TestSignal ends a job's program by a signal from outside, and not by gbatch.
func TestSignal(t *testing.T) {
	s := newSite(t, siteOptions{})
	word := fmt.Sprintf("1000%d", os.Getpid())
	id := s.submit(doc{name: "victim", command: []string{"sleep", word}})
	s.waitRunning(id)
	eventually(t, "its process is there", func() bool { return signal("sleep\x00"+word+"\x00", unix.SIGKILL) })
	d := s.wait(id)
	if diff := cmp.Diff(ended{job.Failed, job.Signal, 137}, endOf(d)); diff != "" {
		t.Errorf("end (-want +got):\n%s", diff)
	}
	if !strings.Contains(d.ReasonText, "SIGKILL") {
		t.Errorf("the reason does not name the signal: %s", d.ReasonText)
	}
}

// signal sends a signal to the process with that command line.
func signal(cmdline string, sig unix.Signal) bool {
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range procs {
		if b, _ := os.ReadFile(p + "/cmdline"); string(b) == cmdline {
			pid, err := strconv.Atoi(filepath.Base(p))
			return err == nil && unix.Kill(pid, sig) == nil
		}
	}
	return false
}

// TestCancel cancels a job that waits, one that runs, and one that ignores TERM.
func TestCancel(t *testing.T) {
	s := newSite(t, siteOptions{ctldConfig: quick})
	runs := s.submit(doc{name: "runs", command: idle, cpus: 4})
	deaf := s.submit(doc{name: "deaf", command: sh("trap '' TERM; while :; do sleep 0.1; done"), cpus: 4})
	waits := s.submit(doc{name: "waits", command: []string{"true"}, cpus: 8})
	s.waitRunning(runs)
	s.waitRunning(deaf)
	if st := s.job(waits).State; st != job.Queued {
		t.Errorf("the third job is %s although all cores are taken", st)
	}
	s.must("gcancel", waits, runs, deaf)
	for _, id := range []string{waits, runs, deaf} {
		if d := s.wait(id); d.State != job.Cancelled {
			t.Errorf("after gcancel:\n%s", describe(d))
		}
	}
	if r := s.run("gcancel", runs); r.code != 0 {
		t.Errorf("cancelling what has ended is not an error: %v", r)
	}
	if r := s.run("gcancel", "99999"); r.code != 3 {
		t.Errorf("cancelling what never was: %v; want exit code 3", r)
	}
}

// TestInteractive starts at once or fails.
func TestInteractive(t *testing.T) {
	s := newSite(t, siteOptions{})
	full := s.submit(doc{name: "full", cpus: 8, command: idle})
	s.waitRunning(full)
	now := doc{name: "now", command: []string{"true"}, scheduling: map[string]any{"interactive": true}}
	if diff := cmp.Diff(ended{job.Failed, job.InteractiveNoRoom, -1}, endOf(s.wait(s.submit(now)))); diff != "" {
		t.Errorf("on a full node (-want +got):\n%s", diff)
	}
	s.must("gcancel", full)
	s.wait(full)
	if diff := cmp.Diff(finished, endOf(s.wait(s.submit(now)))); diff != "" {
		t.Errorf("on a free node (-want +got):\n%s", diff)
	}
}

// TestStorage mounts project storage and tmpfs.
func TestStorage(t *testing.T) {
	s := newSite(t, siteOptions{})
	first := s.submit(doc{name: "writes", command: sh("mkdir -p /project/a && echo kept > /project/a/file"), storage: []any{"/project"}})
	if diff := cmp.Diff(finished, endOf(s.wait(first))); diff != "" {
		t.Fatalf("end (-want +got):\n%s", diff)
	}
	if b, err := os.ReadFile(filepath.Join(s.project(), "a/file")); err != nil || string(b) != "kept\n" {
		t.Errorf("the file that a job wrote: %q, %v", b, err)
	}
	second := s.submit(doc{name: "reads", storage: []any{
		map[string]any{"hostPath": "/project/a", "containerPath": "/in", "readOnly": true},
		map[string]any{"hostPath": "tmpfs", "containerPath": "/scratch", "sizeGb": 1},
	}, command: sh("cat /in/file; echo no > /in/file || echo refused; echo x > /scratch/x && df -k /scratch | tail -1 | awk '{print $2}'")})
	if diff := cmp.Diff(finished, endOf(s.wait(second))); diff != "" {
		t.Fatalf("end (-want +got):\n%s", diff)
	}
	want := "kept\nrefused\n1048576\n"
	out := s.must("glog", second)
	var kept []string
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "sh:") {
			kept = append(kept, line)
		}
	}
	if diff := cmp.Diff(want, strings.Join(kept, "")); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

// TestStorageStaysInItsRoot tries to leave a storage root by a symbolic link
// that a job made there.
func TestStorageStaysInItsRoot(t *testing.T) {
	s := newSite(t, siteOptions{})
	if id := s.submit(doc{name: "link", command: sh("ln -s / /project/up && ln -s ../../.. /project/dots"), storage: []any{"/project"}}); s.wait(id).State != job.Finished {
		t.Fatal(describe(s.job(id)))
	}
	for _, path := range []string{"/project/up/etc", "/project/dots/etc", "/project/up"} {
		id := s.submit(doc{name: "leaves", command: sh("ls /out; cat /out/hostname; true"), storage: []any{map[string]any{"hostPath": path, "containerPath": "/out"}}})
		d := s.wait(id)
		if job.Reason(d.Reason) != job.Mount || d.State != job.Failed {
			t.Errorf("%s: %s log: %s", path, describe(d), s.run("glog", id))
		}
		if !strings.Contains(d.ReasonText, path) {
			t.Errorf("%s: the reason does not name it: %s", path, d.ReasonText)
		}
	}
	s.waitNodes("up", 1)
}

// TestManyShortJobs runs 200 jobs while somebody watches the queue.
func TestManyShortJobs(t *testing.T) {
	s := newSite(t, siteOptions{nodes: 2})
	const n = 200
	stop, watched := make(chan struct{}), make(chan string)
	go func() { // ends when told; the test waits for what it saw
		bad := ""
		for {
			if r := s.run("gqueue", "-a"); r.code != 0 && bad == "" {
				bad = r.String()
			}
			select {
			case <-stop:
				watched <- bad
				return
			default:
			}
		}
	}()
	file := s.write(doc{name: "short", command: sh("echo $GBATCH_JOB_NUMBER >> /project/ran"), storage: []any{"/project"}}.json())
	var ids []string
	for range n {
		ids = append(ids, strings.TrimSpace(s.must("gsubmit", file)))
	}
	if r := s.run("gqueue", append([]string{"wait"}, ids...)...); r.code != 0 {
		t.Errorf("gqueue wait: %v", r)
	}
	close(stop)
	if bad := <-watched; bad != "" {
		t.Errorf("gqueue while jobs ran: %s", bad)
	}
	ran := lines(t, filepath.Join(s.project(), "ran"))
	counts := map[string]int{}
	for _, l := range ran {
		counts[l]++
	}
	for _, id := range ids {
		if counts[id] != 1 {
			t.Errorf("job %s ran %d times", id, counts[id])
		}
	}
	if len(ran) != n {
		t.Errorf("%d lines were written, want %d", len(ran), n)
	}
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(fmt.Errorf("read what jobs wrote: %w", err))
	}
	return strings.Fields(string(b))
}

// TestPause pauses a job by its owner's word and lets it go on.
func TestPause(t *testing.T) {
	s := newSite(t, siteOptions{})
	id := s.submit(doc{name: "still", command: sh("trap 'exit 0' TERM; while :; do echo line; sleep 0.1; done")})
	s.waitRunning(id)
	if out := s.must("gcancel", "--pause", id); !strings.Contains(out, "paused; it keeps its resources") {
		t.Errorf("gcancel --pause says %q", out)
	}
	if d := s.job(id); d.State != job.Running || d.Reason != "Paused" || !strings.Contains(d.ReasonText, "gcancel --resume") {
		t.Errorf("a paused job:\n%s", describe(d))
	}
	last, same := "", 0
	eventually(t, "the job to stand still", func() bool {
		out := s.run("glog", id).out
		if same++; out != last {
			last, same = out, 0
		}
		return same > 5
	})
	s.must("gcancel", "--resume", id)
	eventually(t, "the job to go on", func() bool { return len(s.run("glog", id).out) > len(last) })
	s.must("gcancel", "--pause", id)
	s.must("gcancel", id)
	if d := s.wait(id); d.State != job.Cancelled {
		t.Errorf("a paused job was cancelled:\n%s", describe(d))
	}
}
