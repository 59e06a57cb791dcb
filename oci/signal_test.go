package oci_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"gbatch/oci/draft"
)

// programs are what the shells of these tests run.
var programs = map[string]string{
	// aware saves its work when it is told to end; a second signal shows.
	"aware": `#!/usr/bin/perl
$| = 1;
my $n = 0;
for my $s (qw(TERM INT)) {
	$SIG{$s} = sub { $n++; print "told $s\n"; select(undef, undef, undef, 0.3); print "saved $n\n"; exit 0 };
}
print "ready\n";
select(undef, undef, undef, 0.02) while 1;
`,
	// listener goes on after USR1.
	"listener": `#!/usr/bin/perl
$| = 1;
$SIG{USR1} = sub { print "told USR1\n" };
print "ready\n";
select(undef, undef, undef, 0.02) while 1;
`,
	// forwarder is as tini: it holds all signals back, fetches them and passes them
	// on to its child, which has a process group of its own.
	"forwarder": `#!/usr/bin/perl
use POSIX;
my ($all, $none) = (POSIX::SigSet->new, POSIX::SigSet->new);
$all->fillset;
sigprocmask(SIG_BLOCK, $all);
my $pid = fork;
if (!$pid) { setpgid(0, 0); sigprocmask(SIG_UNBLOCK, $all); exec @ARGV }
my $done = 0;
for my $s (qw(TERM INT USR1)) { $SIG{$s} = sub { kill $s, $pid } }
$SIG{CHLD} = sub { $done = 1 };
sigsuspend($none) until $done;
waitpid $pid, 0;
exit($? >> 8);
`,
}

var shells = map[string]string{"busybox": "/bin/sh", "dash": "/usr/bin/dash", "bash": "/usr/bin/bash"}

// newShell is a container that runs a script by a shell, with the programs of
// this machine and those above in its PATH.
func newShell(t *testing.T, shell, script string) *box {
	b := newBox(t, script)
	dir := t.TempDir()
	for _, name := range []string{"/usr/bin/bash", "/usr/bin/dash", "/usr/bin/perl", "/usr/bin/setsid"} {
		if _, err := os.Stat(name); err != nil {
			t.Skipf("SKIPPED, no %s on this machine", name)
		}
	}
	for name, text := range programs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b.req.Command[0] = shell
	b.req.Env = []string{"PATH=/t:/usr/bin:/bin", "SH=" + shell}
	b.req.Mounts = []draft.Mount{
		{Source: dir, Target: "/t", ReadOnly: true},
		{Source: "/usr", Target: "/usr", ReadOnly: true},
		{Source: "/usr/lib", Target: "/lib", ReadOnly: true},
		{Source: "/usr/lib64", Target: "/lib64", ReadOnly: true},
	}
	return b
}

// Whatever stands before a program, a stop reaches it, and once.
func TestStopReachesProgram(t *testing.T) {
	needContainers(t)
	cases := map[string]struct{ script, term, int string }{ // what is said after TERM, and INT; "" is not tried
		"a shell":       {`aware; echo shell`, "told TERM\nsaved 1\nshell\n", ""},
		"joined":        {`true && aware && true`, "told TERM\nsaved 1\n", "told INT\nsaved 1\n"},
		"two shells":    {`$SH -c 'aware; exit 0'; exit 0`, "told TERM\nsaved 1\n", "told INT\nsaved 1\n"},
		"replaced":      {`exec aware`, "told TERM\nsaved 1\n", "told INT\nsaved 1\n"},
		"a pipe":        {`aware | cat; exit 0`, "told TERM\nsaved 1\n", ""},
		"a trap":        {`trap 'echo trap' TERM; aware; exit 0`, "told TERM\nsaved 1\ntrap\n", ""},
		"a trap passes": {`trap 'kill -TERM $P; wait $P; exit 0' TERM; aware & P=$!; wait $P`, "told TERM\nsaved 1\n", ""},
		"another group": {`/usr/bin/setsid aware; exit 0`, "told TERM\nsaved 1\n", "told INT\nsaved 1\n"},
		"an init":       {`exec forwarder aware`, "told TERM\nsaved 1\n", "told INT\nsaved 1\n"},
	}
	for shell, path := range shells {
		for name, tc := range cases {
			for sig, want := range map[syscall.Signal]string{syscall.SIGTERM: tc.term, syscall.SIGINT: tc.int} {
				if want == "" {
					continue
				}
				t.Run(strings.Join([]string{shell, name, sig.String()}, "/"), func(t *testing.T) {
					b := newShell(t, path, tc.script)
					s := b.start()
					b.await("ready")
					if sig == syscall.SIGINT || name == "a trap passes" { // which needs $P
						poll(t, "shells that wait", func() bool { return shellsWait(s.PID()) })
					}
					if err := s.Stop(t.Context(), sig, patience); err != nil {
						t.Fatal(err)
					}
					exit := b.exit()
					if _, said, _ := strings.Cut(b.log(), "ready\n"); said != want || exit.Signal != 0 {
						t.Errorf("said %q, want %q; exit %+v", said, want, exit)
					}
				})
			}
		}
	}
}

// A program that handles no INT ends by it behind each shell, though the shell
// takes it for itself while it waits.
func TestStopEndsUnaware(t *testing.T) {
	needContainers(t)
	for shell, path := range shells {
		t.Run(shell, func(t *testing.T) {
			b := newShell(t, path, `echo ready; sleep 1000 && sleep 1000`)
			s := b.start()
			b.await("ready")
			poll(t, "running sleep", func() bool { return childRuns(s.PID(), "sleep") })
			if err := s.Stop(t.Context(), syscall.SIGINT, patience); err != nil {
				t.Fatal(err)
			}
			if exit := b.exit(); exit.Signal == int(syscall.SIGKILL) || !exit.Stopped {
				t.Errorf("exit: %+v", exit)
			}
		})
	}
}

// shellsWait says whether the container's processes other than programs, which are
// Perl's, wait for their children by now: a shell that has not come so far ends by
// INT itself, in a container as at a terminal.
func shellsWait(first int) bool {
	space := func(proc string) string { ns, _ := os.Readlink(filepath.Join(proc, "ns/pid")); return ns }
	own := space(filepath.Join("/proc", strconv.Itoa(first)))
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range all {
		if space(proc) != own {
			continue
		}
		exe, _ := os.Readlink(filepath.Join(proc, "exe"))
		call, _ := os.ReadFile(filepath.Join(proc, "syscall")) // number and arguments
		number, _, _ := strings.Cut(string(call), " ")
		waits := []string{strconv.Itoa(syscall.SYS_WAIT4), strconv.Itoa(syscall.SYS_RT_SIGSUSPEND)} // dash's wait is the other
		if filepath.Base(exe) != "perl" && !slices.Contains(waits, number) {
			return false
		}
	}
	return true
}

// childRuns says whether a child of a process runs a program by now: before that it
// is a copy of its parent, which takes signals as the parent does.
func childRuns(parent int, program string) bool {
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range all {
		stat, _ := os.ReadFile(name) // pid (program) state parent
		_, of, _ := strings.Cut(string(stat), " ("+program+") ")
		if f := strings.Fields(of); len(f) > 1 && f[1] == strconv.Itoa(parent) {
			return true
		}
	}
	return false
}

// USR1 tells who listens and ends nobody beside it; if nobody listens it ends
// the program.
func TestUserSignal(t *testing.T) {
	needContainers(t)
	for shell, path := range shells {
		t.Run(shell, func(t *testing.T) {
			b := newShell(t, path, `sleep 1000 & $SH -c 'listener; exit 0'; exit 0`)
			s := b.start()
			b.await("ready")
			var before uint64
			poll(t, "running sleep", func() bool {
				st, err := s.Stats()
				before = uint64(st.Pids)
				return err == nil && st.Pids >= 4
			})
			if err := s.Signal(syscall.SIGUSR1); err != nil {
				t.Fatal(err)
			}
			b.await("told USR1")
			if st, err := s.Stats(); err != nil || uint64(st.Pids) != before {
				t.Errorf("%d processes, %d before, %v", st.Pids, before, err)
			}
			if err := s.Kill(); err != nil {
				t.Fatal(err)
			}
			b.exit()
		})
	}
}

// With SignalFirst the first process is told, and nobody else.
func TestSignalFirst(t *testing.T) {
	needContainers(t)
	b := newShell(t, "/usr/bin/bash", `trap 'echo trap; kill -KILL $P; exit 5' TERM; aware & P=$!; while :; do wait $P; done`)
	b.cfg.SignalFirst = true
	s := b.start()
	b.await("ready")
	poll(t, "shell that knows its child", func() bool { return shellsWait(s.PID()) })
	if err := s.Stop(t.Context(), syscall.SIGTERM, patience); err != nil {
		t.Fatal(err)
	}
	if exit, log := b.exit(), b.log(); exit.Code != 5 || !strings.HasSuffix(log, "ready\ntrap\n") {
		t.Errorf("exit %+v, said %q", exit, log)
	}
}
