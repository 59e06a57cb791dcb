package reboot

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestDamagedNote: where it is not known which order was followed last, the one that stands is not followed, and
// the controller is told; the next one is.
func TestDamagedNote(t *testing.T) {
	file := filepath.Join(t.TempDir(), "reboot.json")
	if err := os.WriteFile(file, []byte("{\"seq\""), 0o600); err != nil {
		t.Fatal(err)
	}
	r := Open(Options{File: file, Boot: "b", Empty: func() bool { return true }, Log: slog.New(slog.DiscardHandler)})
	r.Ordered(7)
	if w := r.Word(); r.due() || w == nil || w.Seq != 7 || !strings.Contains(w.Failed, "order it again") || r.UnderWay() != "" {
		t.Errorf("it says %+v, %q", w, r.UnderWay())
	}
	r.Ordered(8)
	if !r.due() {
		t.Error("the next order is not followed")
	}
}

// TestOnce: an order is followed when the machine is empty, and once: not again by a
// daemon that is started anew, nor after the boot, nor by an older order that comes
// again. One whose program was under way when the daemon ended is.
func TestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "reboot.json")
		var runs, hang atomic.Int64
		var empty, fails atomic.Bool
		open := func(boot string) (*Reboots, context.CancelFunc) {
			r := Open(Options{File: file, Boot: boot, Empty: empty.Load, Changed: func() {}, Log: slog.New(slog.DiscardHandler),
				Program: func(ctx context.Context) error {
					runs.Add(1)
					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-time.After(time.Duration(hang.Load())):
						if fails.Load() {
							return errors.New("exit code 3")
						}
						return nil
					}
				}})
			ctx, cancel := context.WithCancel(t.Context())
			go r.Run(ctx) // ends with cancel
			return r, func() { cancel(); synctest.Wait() }
		}
		pass := func(want int64, what string) {
			t.Helper()
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if got := runs.Load(); got != want {
				t.Fatalf("%s: the program ran %d times, want %d", what, got, want)
			}
		}
		r, end := open("first")
		pass(0, "no order")
		r.Ordered(5)
		pass(0, "jobs are there")
		hang.Store(int64(time.Hour))
		empty.Store(true)
		pass(1, "empty")
		if r.UnderWay() == "" {
			t.Error("a machine that is being rebooted may take jobs")
		}
		end()
		hang.Store(0)
		r, end = open("first")
		pass(1, "nobody says so any more")
		r.Ordered(5)
		pass(2, "it was under way")
		end()
		r, end = open("first")
		r.Ordered(5)
		pass(2, "it has run")
		end()
		r, end = open("second")
		r.Ordered(5)
		pass(2, "booted")
		if r.UnderWay() != "" {
			t.Error("a machine that is back takes no jobs")
		}
		r.Ordered(4)
		pass(2, "an older order")
		fails.Store(true)
		r.Ordered(6)
		pass(3, "another order")
		if w := r.Word(); w == nil || w.Seq != 6 || w.Failed != "exit code 3" || r.UnderWay() != "" {
			t.Errorf("a program that failed: %+v, %q", w, r.UnderWay())
		}
		end()
	})
}
