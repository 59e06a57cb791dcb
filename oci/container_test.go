package oci_test

import (
	"strings"
	"testing"
)

func TestExitCode(t *testing.T) {
	exit, log := newBox(t, "echo hello; echo oops >&2; exit 7").run()
	if exit.Code != 7 || exit.Signal != 0 || exit.OOMKilled || exit.Failure != nil {
		t.Errorf("exit: %+v", exit)
	}
	if log != "hello\noops\n" || exit.LogBytes != int64(len(log)) {
		t.Errorf("log %q, %d bytes", log, exit.LogBytes)
	}
	if exit.Started.IsZero() || exit.Finished.Before(exit.Started) || exit.CPUNanos == 0 || exit.PeakBytes == 0 {
		t.Errorf("figures are missing: %+v", exit)
	}
}

func TestFirstLook(t *testing.T) {
	b := newBox(t, "id; ls -l /; mount; cat /proc/self/status | grep -E 'Cap|NoNew|Seccomp'; env; hostname")
	b.req.Hostname = "rank0"
	_, log := b.run()
	t.Log(log)
	if !strings.Contains(log, "rank0") {
		t.Error("no host name")
	}
}
