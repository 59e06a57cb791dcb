package cgroups

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestFreeze: however much its processes compute and begin others, a group stands still
// when Freeze returns, each time, and once more is no error.
func TestFreeze(t *testing.T) {
	h := needGroups(t)
	path := fmt.Sprintf("/gbatch-cgfreeze.%d", os.Getpid())
	makeGroup(t, h, path, false)
	g, err := h.Find(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(g.Kill(time.Minute), g.Remove()); err != nil {
			t.Error(err)
		}
	})
	for range 4 {
		cmd := exec.Command("sh", "-c", "read x; while :; do (:); done")
		in, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }() // the cleanup waits for it
		t.Cleanup(func() { cmd.Process.Kill(); <-ended })
		for _, dir := range g.dirs() {
			if err := move(dir, cmd.Process.Pid); err != nil && !strings.Contains(dir, "cpuset") { // which needs its own values first
				t.Fatal(err)
			}
		}
		in.Close()
	}
	used := func() uint64 {
		st, err := g.Stats()
		if err != nil {
			t.Fatal(err)
		}
		return st.CPUNanos
	}
	for range 20 {
		for range 2 {
			if err := g.Freeze(true); err != nil {
				t.Fatal(err)
			}
		}
		first := used()
		if second := used(); second != first {
			t.Fatalf("it used %d ns of processor time while it stood still", second-first)
		}
		if err := g.Freeze(false); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); used() == first; {
			if time.Now().After(end) {
				t.Fatal("it does not go on")
			}
		}
	}
}

// TestNotFrozen: processes that do not stand still go on, and who asked is told.
func TestNotFrozen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := t.TempDir()
		put(t, filepath.Join(root, "g"), map[string]string{"freezer.state": "THAWED\n"}) // a file says what is written, and never that all stand still
		g, err := Host{Mode: V1, Mounts: map[string]string{"freezer": root}}.Find("/g")
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Freeze(true); !errors.Is(err, ErrNotFrozen) {
			t.Errorf("got %v, want %v", err, ErrNotFrozen)
		}
		if now, err := os.ReadFile(filepath.Join(root, "g", "freezer.state")); err != nil || string(now) != "THAWED" {
			t.Errorf("left as %q, %v", now, err)
		}
	})
}
