package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// user uses a site by the programs of one version, one command after the other. No command may fail.
type user struct {
	*several
	name, bin string
	turns     atomic.Int64
	longest   atomic.Pointer[took] // command since it was asked last

	// Of the goroutine that works, until it has ended.
	ran, cancelled []string // jobs
	commands       int
}

// took is how long a command took.
type took struct {
	what string
	time.Duration
}

func (w took) String() string { return fmt.Sprintf("%.2f s (%s)", w.Seconds(), w.what) }

func (u *user) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(u.s.t.Context(), filepath.Join(u.bin, name), append([]string{"--controller", u.address, "--token-file", u.token}, args...)...)
	cmd.Env = cleanEnv()
	return cmd
}

// do runs a command that has to succeed. How long it took counts, but of one that waits for jobs.
func (u *user) do(name string, args ...string) string {
	begun := time.Now()
	r := execute(u.command(name, args...))
	w := took{fmt.Sprint(u.name, " ", name), time.Since(begun)}
	if last := u.longest.Load(); args[0] != "wait" && w.Duration > last.Duration {
		u.longest.Store(&w)
	}
	u.commands++
	if r.code != 0 && u.s.t.Context().Err() == nil {
		u.s.t.Errorf("%s %s of the %s version: %v", name, strings.Join(args, " "), u.name, r)
	}
	return strings.TrimSpace(r.out)
}

// work goes on until it is told that it is over.
func (u *user) work(over *atomic.Bool) {
	file := func(d doc) string {
		d.storage = []any{map[string]any{"containerPath": "/project"}}
		return u.s.write(d.json())
	}
	once := file(doc{name: "once", cpus: 2, command: sh("echo $GBATCH_JOB_NUMBER >>/project/ran; sleep 0.1")}) // so that some wait for others
	endless := file(doc{name: "endless", command: idle})
	for !over.Load() && u.s.t.Context().Err() == nil {
		var batch []string
		for range 4 {
			batch = append(batch, u.do("gsubmit", once))
		}
		victim := u.do("gsubmit", endless)
		if out := u.do("gqueue", "-h", "-a", "-o", "%i", victim); out != victim {
			u.s.t.Errorf("the %s version submitted job %s and lists %q", u.name, victim, out)
		}
		u.do("gcancel", victim)
		u.do("gqueue", append([]string{"wait"}, batch...)...)
		u.ran, u.cancelled = append(u.ran, batch...), append(u.cancelled, victim)
		u.turns.Add(1)
	}
}

// long is a job that runs until it is told to end, and who follows it by both versions.
type long struct {
	id           string
	events, logs []*started
}

// begin has one more job run.
func (u *upgrade) begin() {
	u.s.t.Helper()
	script := "echo $GBATCH_JOB_NUMBER >>/project/begun; i=0; until [ -e /project/over ]; do i=$((i+1)); echo line $i; sleep 0.2; done; echo $GBATCH_JOB_NUMBER >>/project/ended"
	l := &long{id: u.as("gsubmit", u.s.write(doc{name: "long", command: sh(script), storage: []any{map[string]any{"containerPath": "/project"}}}.json()))}
	eventually(u.s.t, "the job runs", func() bool { return strings.Contains(u.as("gqueue", "show", l.id), "RUNNING") })
	for _, v := range u.users {
		l.events = append(l.events, u.s.begin(v.command("gqueue", "events", "-f", l.id)))
		l.logs = append(l.logs, u.s.begin(v.command("glog", "-f", l.id)))
	}
	u.long = append(u.long, l)
}

// end has those jobs end, each of which ran once, and compares what those saw who followed them.
func (u *upgrade) end() {
	t := u.s.t
	t.Helper()
	if err := os.WriteFile(u.s.project()+"/over", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, l := range u.long {
		u.as("gqueue", "wait", l.id)
		timeline := strings.Count(u.as("gqueue", "events", l.id), "\n")
		for i, v := range u.users {
			if code, got := l.events[i].code(), l.events[i].out.String(); code != 0 || strings.Count(got, "\n") != timeline {
				t.Errorf("gqueue events -f %s of the %s version ended with %d and told, of %d lines:\n%s%s", l.id, v.name, code, timeline, got, l.events[i].err.String())
			}
			code, lines := l.logs[i].code(), strings.Split(strings.TrimSpace(l.logs[i].out.String()), "\n")
			if code != 0 {
				t.Errorf("glog -f %s of the %s version ended with %d: %s", l.id, v.name, code, l.logs[i].err.String())
			}
			for n, line := range lines {
				if line != fmt.Sprint("line ", n+1) {
					t.Errorf("glog -f %s of the %s version has %q as line %d of %d", l.id, v.name, line, n+1, len(lines))
					break
				}
			}
		}
	}
}
