package oci_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"gbatch/oci"
	"gbatch/oci/draft"
	"gbatch/oci/failure"
	"gbatch/oci/journal"
	"gbatch/oci/userns"
)

// keeperEnv names what stays in kept containers, for a machine without go.
const keeperEnv = "GBATCH_TEST_KEEPER"

// keeperProgram is what stays in kept containers.
var keeperProgram = sync.OnceValues(func() (string, error) {
	if file := os.Getenv(keeperEnv); file != "" {
		return file, nil
	}
	file := filepath.Join(benchDir, "keeper") // what is left there is nobody's
	cmd := exec.Command("go", "build", "-o", file, "gbatch/internal/launch/program")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return file, os.Chmod(file, 0o755)
})

// series is a kept container, and the directories of what runs in it.
type series struct {
	*testing.T
	first *box
	kept  *oci.Kept
	last  *oci.Container
	count int
}

// newSeries begins a container that is kept, with its first program.
func newSeries(t *testing.T, script string, edit func(*box)) (*series, *box) {
	t.Helper()
	needContainers(t)
	if _, err := exec.LookPath("go"); err != nil && os.Getenv(keeperEnv) == "" {
		t.Skip("SKIPPED, what stays in a container is built by go, which is not here")
	}
	program, err := keeperProgram()
	if err != nil {
		t.Fatal(err)
	}
	s := &series{T: t}
	b := newBox(t, script)
	b.cfg.Keep = &oci.Keep{Program: program}
	if edit != nil {
		edit(b)
	}
	b.prepare()
	h := b.hand
	if !b.req.IDs.IsZero() {
		ns, err := userns.New(b.req.IDs, false)
		if err != nil {
			t.Fatal(err)
		}
		defer ns.Close()
		h.User = ns.User
	}
	b.shim, s.kept, err = shims.StartKept(b.dir, h)
	if err != nil {
		t.Fatal(err)
	}
	s.first = b
	c := b.shim
	s.last = c
	t.Cleanup(func() { s.kept.Close(); c.Kill(); <-s.kept.Gone() })
	return s, b
}

// next runs a further program there.
func (s *series) next(script string, edit func(*box)) *box {
	s.Helper()
	s.count++
	b := newBox(s.T, script)
	b.req.IDs, b.req.CgroupPath = s.first.req.IDs, s.first.req.CgroupPath
	b.cfg = s.first.cfg
	b.cfg.Keep = nil
	if edit != nil {
		edit(b)
	}
	spec, err := draft.Build(b.req)
	if err != nil {
		s.Fatal(err)
	}
	b.guest = &oci.Guest{Name: fmt.Sprint("guest-", s.count), Home: s.first.dir, Dir: b.dir}
	book, err := journal.Open(s.first.dir)
	if err != nil {
		s.Fatal(err)
	}
	if err := errors.Join(book.Record(b.guest.Name, s.count), book.Close()); err != nil {
		s.Fatal(err)
	}
	if b.shim, err = s.kept.Start(*b.guest, spec, b.cfg, b.hand); err != nil {
		s.Fatal(err)
	}
	c := b.shim
	s.last = c
	s.Cleanup(func() { c.Kill() })
	return b
}

func (s *series) free(want bool) {
	s.Helper()
	if got := s.kept.Free(s.last); got != want {
		s.Fatalf("another may run there: %v, want %v", got, want)
	}
}

// TestKept: programs run one after the other in one container, each with an
// environment, a directory, a log and a result of its own, and each finds neither
// what the ones before had in memory and in /tmp nor any of their processes.
func TestKept(t *testing.T) {
	for name, edit := range map[string]func(*box){
		"root":   nil,
		"user":   func(b *box) { b.req.User = "bob" },
		"mapped": func(b *box) { b.req.IDs = userns.MapOf(userns.Owner{UID: 1234, GID: 1234, First: 7 << 16}) },
	} {
		t.Run(name, func(t *testing.T) {
			s, b := newSeries(t, `echo $A $(pwd) $(id -u); echo x >/tmp/x; echo x >/dev/shm/x; setsid sleep 1000 & exit 3`, func(b *box) {
				b.req.Env, b.req.WorkDir = []string{"A=1"}, "/work"
				if edit != nil {
					edit(b)
				}
			})
			uid := "0"
			if name == "user" {
				uid = "1000"
			}
			if e := b.exit(); e.Code != 3 || e.Failure != nil || e.CPUNanos == 0 || e.Started.IsZero() {
				t.Errorf("first: %+v %+v", e, e.Failure)
			}
			if log := b.log(); log != "1 /work "+uid+"\n" {
				t.Errorf("first: log %q", log)
			}
			first := b.dir
			for i := range 5 {
				s.free(true)
				adopt(t, b, oci.StateFinished)
				user := b.req.User
				b = s.next(fmt.Sprintf(`echo $A $(pwd) $(ls -A /tmp /dev/shm | tr '\n' ' '); grep -l sleep /proc/[0-9]*/comm; stat -c %%a /tmp /dev/shm | tr '\n' ' '; touch /tmp/.a /tmp/b; mkdir -p /tmp/c/d; chmod 700 /tmp /dev/shm 2>/dev/null; sleep 1000 & exit %d`, i), func(b *box) {
					b.req.Env, b.req.WorkDir, b.req.User = []string{"A=" + fmt.Sprint(i+2)}, "/", user
				})
				if e := b.exit(); e.Code != i || e.Lost || e.Failure != nil {
					t.Errorf("program %d: %+v", i, e)
				}
				for _, dir := range []string{first, b.dir} {
					verifyLog(t, dir)
				}
				if g, err := journal.Find(first, b.guest.Name); err != nil || g.Exit == nil || g.Exit.Code != i || g.Begun.IsZero() || string(g.Record) != fmt.Sprint(i+1) {
					t.Errorf("program %d in the journal: %+v, %v", i, g, err)
				}
				if want, got := fmt.Sprintf("%d / /dev/shm: /tmp:\n1777 1777 ", i+2), b.log(); got != want {
					t.Errorf("program %d: log %q, want %q", i, got, want)
				}
			}
		})
	}
}

// verifyLog compares a log with the sums of its blocks, which are there.
func verifyLog(t *testing.T, dir string) {
	t.Helper()
	l := oci.OpenGuestLog(dir, func() bool { return true })
	defer l.Close()
	if damaged, err := l.Verify(func(int64) error { return nil }); damaged != 0 || err != nil {
		t.Errorf("%s: %d bytes damaged, %v", dir, damaged, err)
	}
	if sums, _ := filepath.Glob(filepath.Join(dir, "log", "*.sum")); len(sums) != 1 {
		t.Errorf("%s: the log has the sums %v", dir, sums)
	}
}

// TestKeptRefuses: a program that cannot be begun has the result that it has in a
// container of its own, and the next one runs.
func TestKeptRefuses(t *testing.T) {
	s, b := newSeries(t, "exit 0", nil)
	b.exit()
	for _, tc := range []struct {
		args []string
		dir  string
		want failure.Kind
	}{
		{[]string{"nothing"}, "", failure.CommandNotFound},
		{[]string{"/no/such"}, "", failure.CommandNotFound},
		{[]string{"/etc/passwd"}, "", failure.CommandNotRunable},
		{[]string{"/etc"}, "", failure.CommandNotRunable},
		{[]string{"true"}, "/etc/passwd", failure.WorkDirMissing},
	} {
		s.free(true)
		b := s.next("", func(b *box) { b.req.Command, b.req.WorkDir = tc.args, tc.dir })
		if e := b.exit(); e.Failure == nil || e.Failure.Kind != tc.want || !e.Started.IsZero() {
			t.Errorf("%v in %q: %+v %+v, want %s", tc.args, tc.dir, e, e.Failure, tc.want)
		}
	}
	s.free(true)
	b = s.next("exit 9", nil)
	if e := b.exit(); e.Code != 9 {
		t.Errorf("after them: %+v", e)
	}
	// Each file of a task's costs a good part of what the task does.
	if _, err := os.Stat(b.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program without output has a directory: %v", err)
	}
	l, err := b.shim.Log()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if end, err := l.End(); end != 0 || err != nil {
		t.Errorf("its log ends at %d, %v", end, err)
	}
}

// TestKeptSecrets: variables that are in no file reach the program that they are for, and
// no other.
func TestKeptSecrets(t *testing.T) {
	s, b := newSeries(t, "echo $S", func(b *box) { b.hand.Env = []string{"S=one"} })
	b.exit()
	var logs []string
	logs = append(logs, b.log())
	for _, env := range [][]string{{"S=two"}, nil, {"S=three"}} {
		s.free(true)
		b = s.next("echo $S; tr '\\0' '\\n' </proc/1/environ | grep ^S=", func(b *box) { b.hand.Env = env })
		b.exit()
		logs = append(logs, b.log())
	}
	denied := "/bin/sh: can't open /proc/1/environ: Permission denied\n"
	for i := range logs {
		logs[i] = strings.ReplaceAll(logs[i], denied, "")
	}
	if diff := cmp.Diff([]string{"one\n", "two\n", "\n", "three\n"}, logs); diff != "" {
		t.Errorf("logs (-want +got):\n%s", diff)
	}
}

// TestKeptStops: a signal is for the program and not for the keeper; a kill, a visit and
// objects that outlive processes end the container after the program.
func TestKeptStops(t *testing.T) {
	const waits = `trap 'echo told; exit 5' TERM; echo ready; while :; do sleep 0.01; done`
	t.Run("signal", func(t *testing.T) {
		s, b := newSeries(t, "exit 0", nil)
		b.exit()
		s.free(true)
		b = s.next(waits, nil)
		b.await("ready\n")
		poll(t, "running program", func() bool { return b.shim.PID() != 0 })
		if err := b.shim.Signal(unix.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if e := b.exit(); e.Code != 5 || !strings.HasSuffix(b.log(), "told\n") {
			t.Errorf("%+v, log %q", e, b.log())
		}
		s.free(true)
	})
	t.Run("memory", func(t *testing.T) {
		s, b := newSeries(t, "exit 0", nil)
		b.exit()
		s.free(true)
		b = s.next("dd if=/dev/zero of=/dev/null bs=200M count=1", nil)
		if e := b.exit(); !e.OOMKilled {
			t.Errorf("%+v", e)
		}
		s.free(false)
	})
	t.Run("lease", func(t *testing.T) {
		lease := filepath.Join(t.TempDir(), "lease")
		if err := os.WriteFile(lease, []byte(`{"untilMs":1}`), 0o600); err != nil {
			t.Fatal(err)
		}
		s, b := newSeries(t, "exit 0", nil)
		b.exit()
		s.free(true)
		b = s.next(waits, func(b *box) { b.cfg.LeaseFile = lease })
		if e := b.exit(); e.Code != 137 || !e.LeaseOver {
			t.Errorf("%+v", e)
		}
		s.free(false)
	})
	for name, disturb := range map[string]func(*box) error{
		"kill":   func(b *box) error { return b.shim.Kill() },
		"keeper": func(b *box) error { return unix.Kill(parentOf(b.shim.PID()), unix.SIGKILL) },
		"shim":   func(b *box) error { return unix.Kill(parentOf(parentOf(b.shim.PID())), unix.SIGKILL) },
		"visit": func(b *box) error {
			_, c, err := oci.AdoptGuest(*b.guest)
			return errorOf(c == nil, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, b := newSeries(t, "exit 0", nil)
			b.exit()
			s.free(true)
			b = s.next(waits, nil)
			b.await("ready\n")
			poll(t, "running program", func() bool { return b.shim.PID() != 0 })
			if err := disturb(b); err != nil {
				t.Fatal(err)
			}
			if name == "visit" {
				if err := b.shim.Signal(unix.SIGTERM); err != nil {
					t.Fatal(err)
				}
			}
			<-b.shim.Done()
			e, err := b.shim.Exit()
			if err != nil || e.Lost != (name == "shim") || (e.Code == 137) != (name != "visit") || e.Stopped != (name == "kill") {
				t.Errorf("%+v, %v", e, err)
			}
			s.free(false)
			adopt(t, s.first, oci.StateFinished)
		})
	}
}

// TestKeptLosesOwner: when who asked for it is gone, the program goes on, its result is
// there, and the container ends with it.
func TestKeptLosesOwner(t *testing.T) {
	s, b := newSeries(t, "exit 0", nil)
	b.exit()
	s.free(true)
	b = s.next("echo ready; while [ ! -e /tmp/go ]; do sleep 0.01; done; exit 4", nil)
	b.await("ready\n")
	poll(t, "running program", func() bool { return b.shim.PID() != 0 })
	pid := b.shim.PID()
	s.kept.Close()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/root/tmp/go", pid), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if e := b.exit(); e.Code != 4 {
		t.Errorf("%+v", e)
	}
	<-s.kept.Gone()
}
