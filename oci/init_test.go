package oci_test

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gbatch/cgroups"
	"gbatch/oci/failure"
)

// withInit has a first process begin the box's program.
func withInit(t *testing.T, b *box) *box {
	t.Helper()
	needContainers(t)
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("SKIPPED, the first process is built by go, which is not here")
	}
	program, err := keeperProgram()
	if err != nil {
		t.Fatal(err)
	}
	b.cfg.Init = program
	return b
}

// TestInit: a program with a first process before it hears the signals that it sends itself, and
// is told of as it ended.
func TestInit(t *testing.T) {
	cases := map[string]struct {
		script       string
		code, signal int
		log          string
	}{
		"code":          {`exit 3`, 3, 0, ""},
		"term":          {`kill $$; sleep 1000`, 143, 15, ""},
		"kill":          {`kill -9 $$; sleep 1000`, 137, 9, ""},
		"from subshell": {`(kill $$); sleep 1000`, 143, 15, ""},
		"trap":          {`trap 'echo told; exit 7' TERM; kill -TERM $$; sleep 1000`, 7, 0, "told\n"},
		"abort":         {`exec sh -c 'kill -ABRT $$'`, 134, 6, ""},
		"its own group": {`trap '' TERM; kill 0; echo on; kill -KILL 0`, 137, 9, "on\n"},
		"the first":     {`kill -9 1; kill 1; echo on`, 0, 0, "on\n"},
		"all others":    {`(sleep 1000 &); kill -9 -1; echo on`, 0, 0, "on\n"},
		"left behind":   {`(sleep 1000 &); setsid sleep 1000 & exit 4`, 4, 0, ""},
		"orphans":       {`i=0; while [ $i -lt 20 ]; do (sleep 0.05 &); i=$((i+1)); done; sleep 0.5; ps -o stat | grep -c Z`, 1, 0, "0\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := withInit(t, newBox(t, tc.script))
			b.start()
			exit := b.exit()
			if exit.Code != tc.code || exit.Signal != tc.signal || exit.Failure != nil || exit.Stopped || exit.Started.IsZero() {
				t.Errorf("ended %+v, failure %+v; want code %d, signal %d", exit, exit.Failure, tc.code, tc.signal)
			}
			if log := b.log(); log != tc.log {
				t.Errorf("said %q, want %q", log, tc.log)
			}
		})
	}
}

// TestInitFailures: what cannot begin is told as without a first process before it.
func TestInitFailures(t *testing.T) {
	cases := map[string]struct {
		edit func(*box)
		code int
		want failure.Kind
	}{
		"no command":  {func(b *box) { b.req.Command = []string{"nowhere"} }, 127, failure.CommandNotFound},
		"no program":  {func(b *box) { b.req.Command = []string{"/etc/passwd"} }, 126, failure.CommandNotRunable},
		"too little":  {func(b *box) { b.req.Limits.MemoryBytes = cgroups.MinMemory }, 125, failure.MemoryTooSmall},
		"no such dir": {func(b *box) { b.req.WorkDir = "/etc/passwd" }, 125, failure.WorkDirMissing},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := withInit(t, newBox(t, "true"))
			tc.edit(b)
			b.start()
			exit := b.exit()
			if tc.want == failure.MemoryTooSmall && exit.Failure == nil && exit.Code == 0 {
				return // how little is enough depends on the build
			}
			if exit.Code != tc.code || exit.Failure == nil || exit.Failure.Kind != tc.want {
				t.Errorf("ended %+v, failure %+v; want code %d, %s", exit, exit.Failure, tc.code, tc.want)
			}
		})
	}
}

// TestInitStop: a stop is for the program, not for who began it, and does what it does to a
// program that is no first process; a kill ends all.
func TestInitStop(t *testing.T) {
	cases := map[string]struct {
		script string
		sig    syscall.Signal
		code   int
		log    string
	}{
		"handled":   {`trap 'echo told; exit 7' TERM; echo ready; sleep 1000 & wait`, unix.SIGTERM, 7, "ready\ntold\n"},
		"unaware":   {`echo ready; exec sleep 1000`, unix.SIGTERM, 143, "ready\n"},
		"shell":     {`echo ready; sleep 1000; echo on; exit 5`, unix.SIGTERM, 5, "ready\nTerminated\non\n"},
		"interrupt": {`echo ready; exec sleep 1000`, unix.SIGINT, 130, "ready\n"},
		"kill":      {`trap '' TERM; setsid sleep 1000 & echo ready; sleep 1000`, unix.SIGKILL, 137, "ready\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := withInit(t, newBox(t, tc.script))
			c := b.start()
			b.await("ready")
			if strings.Contains(tc.script, "sleep 1000; echo on") {
				poll(t, "running sleep", func() bool { return childRuns(c.PID(), "sleep") })
			}
			if err := c.Stop(t.Context(), tc.sig, patience); err != nil {
				t.Fatal(err)
			}
			if exit := b.exit(); exit.Code != tc.code || !exit.Stopped {
				t.Errorf("ended %+v, want code %d", exit, tc.code)
			}
			if log := b.log(); log != tc.log {
				t.Errorf("said %q, want %q", log, tc.log)
			}
		})
	}
}
