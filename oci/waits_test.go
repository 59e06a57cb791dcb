package oci_test

import (
	"os"
	"path/filepath"
	"testing"

	"gbatch/oci"
	"gbatch/oci/result"
	"gbatch/oci/wire"
)

// waiting starts a box whose program waits for the word to begin, and returns when all else is there.
func waiting(t *testing.T, script string) *box {
	t.Helper()
	b := newBox(t, script)
	b.cfg.Waits = true
	b.start()
	poll(t, "container is made", func() bool { phase, _ := b.shim.Phase(); return phase == wire.PhaseMade })
	if _, err := os.Stat(filepath.Join(b.dir, result.FileBegun)); err == nil || b.log() != "" {
		t.Fatalf("its program has begun without the word: %v, log %q", err, b.log())
	}
	return b
}

// TestWaits: a container that waits has all but its program, which begins by the word, once.
func TestWaits(t *testing.T) {
	needContainers(t)
	b := waiting(t, "echo runs; exit 3")
	if err := b.shim.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if exit := b.exit(); exit.Code != 3 || exit.Started.IsZero() || b.log() != "runs\n" {
		t.Errorf("%+v, log %q", exit, b.log())
	}
}

// TestWaitsIsStopped: one that is stopped before the word runs nothing.
func TestWaitsIsStopped(t *testing.T) {
	needContainers(t)
	b := waiting(t, "echo runs")
	if err := b.shim.Kill(); err != nil {
		t.Fatal(err)
	}
	if exit := b.exit(); !exit.Stopped || !exit.Started.IsZero() || b.log() != "" {
		t.Errorf("%+v, log %q", exit, b.log())
	}
}

// TestWaitsWithoutStarter: where the daemon dies before the word, nothing ran and nothing is left.
func TestWaitsWithoutStarter(t *testing.T) {
	needContainers(t)
	b := newBox(t, "echo runs")
	b.cfg.Waits = true
	kill := startInDaemon(t, b)
	kill()
	adopt(t, b, oci.StateReady)
	if b.log() != "" {
		t.Errorf("it ran: %q", b.log())
	}
}
