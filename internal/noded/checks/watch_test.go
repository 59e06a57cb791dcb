package checks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/noded/config"
)

// bench is a machine whose faults a test decides, and the daemon's watch of it, which
// may be killed.
type bench struct {
	t    *testing.T
	cfg  *config.Config
	file string
	boot string

	mu     sync.Mutex
	fault  string    // what is wrong now; empty: nothing
	proven time.Time // when the programs began last of those runs that passed

	w    *Watch
	kill func()
}

func newBench(t *testing.T, programs int) *bench {
	c, _ := site()
	for i := range programs {
		c.Health.Programs = append(c.Health.Programs, config.Program{Path: fmt.Sprintf("/p%d", i)})
	}
	c.SetDefaults()
	b := &bench{t: t, cfg: c, file: filepath.Join(t.TempDir(), "health.json"), boot: "b1"}
	b.start()
	return b
}

func (b *bench) is(fault string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fault == fault
}

func (b *bench) set(fault string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = fault
}

// start begins a daemon's watch.
func (b *bench) start() {
	b.t.Helper()
	_, m := site()
	root := m.Root
	m.Root = swapFS{root: root.(fstest.MapFS), b: b}
	m.Ask = func(path string) (Disk, error) {
		if path == "/srv/data" {
			return Disk{ReadOnly: true}, nil
		}
		for b.is("hang") && path == "/srv/project" {
			<-time.After(time.Second)
		}
		return Disk{ReadOnly: b.is("read-only")}, nil
	}
	m.Skew = func(context.Context) (time.Duration, bool) {
		if b.is("clock") {
			return time.Minute, true
		}
		return 0, true
	}
	w, err := Open(Options{Config: b.cfg, Machine: m, File: b.file, Boot: b.boot, Run: b.program, Changed: func() {}, Log: slog.New(slog.DiscardHandler),
		GPUs: func() []string {
			if b.is("gpu") {
				return []string{"GPU-1"}
			}
			return nil
		}})
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Watch(ctx)
	}()
	b.w, b.kill = w, func() {
		cancel()
		<-done
	}
}

// program is one of the site's: it takes a while, and sees faults of its own.
func (b *bench) program(ctx context.Context, p config.Program) error {
	began := time.Now()
	for range 5 {
		if b.is("program") && p.Path == "/p0" || b.is("second program") && p.Path == "/p1" {
			return errors.New("exit code 1")
		}
		if !sleep(ctx, time.Second) {
			return context.Cause(ctx)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.Path == "/p0" {
		b.proven = began
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// swapFS shows the files of a machine with a fault.
type swapFS struct {
	root fstest.MapFS
	b    *bench
}

// 100 faults of all kinds befall a machine, one after the other, while its daemon is
// killed and the machine rebooted now and then. It is told of each, and the machine
// is back only when the fault is gone and programs that began after that have passed.
func TestHundredFaults(t *testing.T) {
	kinds := []string{"hang", "read-only", "clock", "edac", "memory", "unmounted", "program", "second program", "gpu"}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("GBATCH_SEED"); text != "" {
		if _, err := fmt.Sscan(text, &seed); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("GBATCH_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 2)
		defer func() { b.kill() }()
		b.awaitFit()
		for n := range 100 {
			kind := kinds[rng.IntN(len(kinds))]
			time.Sleep(time.Duration(rng.IntN(600)) * time.Second)
			if fit := b.w.Reasons(); len(fit) > 0 {
				t.Fatalf("fault %d: not fit before it: %q", n, fit)
			}
			b.set(kind)
			if kind == "gpu" { // the driver's word takes it out; its return is what counts
				time.Sleep(time.Minute)
			} else {
				b.waitFor(fmt.Sprintf("fault %d, %s", n, kind), 7*time.Minute, func(list []string) bool { return len(list) > 0 && !strings.HasPrefix(list[0], "to be proven") })
			}
			for range rng.IntN(3) {
				time.Sleep(time.Duration(rng.IntN(100)) * time.Second)
				b.restart(rng.IntN(4) == 0)
				if kind == "gpu" {
					time.Sleep(time.Minute) // until it was looked at
				}
				b.untilSure(n, kind)
			}
			b.untilSure(n, kind)
			repaired := time.Now()
			b.set("")
			if rng.IntN(2) == 0 && kind != "gpu" {
				b.restart(false)
			}
			if kind == "gpu" {
				b.waitFor("the GPU was seen", time.Minute, func(list []string) bool { return len(list) > 0 || !b.wasProvenAfter(repaired) })
			}
			b.waitFor(fmt.Sprintf("fault %d, %s, repaired", n, kind), 7*time.Minute, func(list []string) bool {
				fit := len(list) == 0
				if fit && kind != "gpu" && !b.wasProvenAfter(repaired) {
					t.Errorf("fault %d, %s: fit again with no program passed since", n, kind)
				}
				return fit && b.wasProvenAfter(repaired)
			})
		}
	})
}

func (b *bench) wasProvenAfter(at time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.proven.Before(at)
}

// restart kills the daemon, maybe with the machine.
func (b *bench) restart(machine bool) {
	b.kill()
	if machine {
		b.boot += "'"
	}
	b.start()
}

// waitFor looks at each second until ok says so.
func (b *bench) waitFor(what string, most time.Duration, ok func(reasons []string) bool) {
	b.t.Helper()
	for end := time.Now().Add(most); ; time.Sleep(time.Second) {
		synctest.Wait()
		list := b.w.Reasons()
		if ok(list) {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("%s: no sign of it after %s: %q", what, most, list)
		}
	}
}

func (b *bench) awaitFit() {
	b.t.Helper()
	b.waitFor("fit", 7*time.Minute, func(list []string) bool { return len(list) == 0 })
}

// untilSure looks for some minutes whether the machine is given back though its fault
// is there. A GPU is taken out by itself, and not the machine with it.
func (b *bench) untilSure(n int, kind string) {
	b.t.Helper()
	for range 400 {
		synctest.Wait()
		if len(b.w.Reasons()) == 0 && kind != "gpu" {
			b.t.Fatalf("fault %d, %s: the machine was given back", n, kind)
		}
		time.Sleep(time.Second)
	}
}

// Open reads a file, as it is with the fault.
func (s swapFS) Open(name string) (fs.File, error) {
	for _, f := range []struct{ fault, file, text string }{
		{"edac", "sys/devices/system/edac/mc/mc1/ue_count", "2\n"}, {"memory", "proc/meminfo", "MemAvailable: 1 kB\n"}, {"unmounted", "proc/self/mountinfo", "\n"},
	} {
		if f.file == name && s.b.is(f.fault) {
			return fstest.MapFS{name: file(f.text)}.Open(name)
		}
	}
	return s.root.Open(name)
}

// What is said while a machine is out, and after it.
func TestReasons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 0)
		defer func() { b.kill() }()
		b.awaitFit()
		b.set("edac")
		const broken = "2 uncorrected errors of the machine's memory since it was booted: find the module by ras-mc-ctl --errors, replace it, reboot"
		b.waitFor("told", time.Minute, func(list []string) bool { return len(list) > 0 })
		if diff := cmp.Diff([]string{broken}, b.w.Reasons()); diff != "" || !b.w.Failing()["edac"] {
			t.Errorf("(-want +got):\n%s", diff)
		}
		b.kill()
		b.set("")
		_, m := site()
		w, err := Open(Options{Config: b.cfg, Machine: m, File: b.file, Boot: b.boot})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"to be proven fit again, after: " + broken}, w.Reasons()); diff != "" {
			t.Errorf("after a restart (-want +got):\n%s", diff)
		}
		b.start()
		b.awaitFit()
	})
}
