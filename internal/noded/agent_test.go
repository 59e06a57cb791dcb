package noded

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

// ignoreFigures are the parts of an exit that differ from run to run.
var ignoreFigures = cmpopts.IgnoreFields(api.Exit{}, "StartedMS", "EndedMS", "PeakMem", "CPUSeconds")

func TestHelloWorld(t *testing.T) {
	s := newSite(t, nil).start()
	e, out := s.run(rankID(1), order("echo hello; echo world >&2"))
	if diff := cmp.Diff(&api.Exit{}, e, ignoreFigures); diff != "" {
		t.Errorf("exit (-want +got):\n%s", diff)
	}
	if e.StartedMS == 0 || e.EndedMS < e.StartedMS || e.PeakMem == 0 || e.CPUSeconds == 0 {
		t.Errorf("exit lacks figures: %+v", e)
	}
	if diff := cmp.Diff("hello\nworld\n", out); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	s.holdsNothing()
}

func TestExits(t *testing.T) {
	s := newSite(t, nil).start()
	tests := map[string]struct {
		order *api.RunOrder
		want  api.Exit
	}{
		"code":   {order("exit 3"), api.Exit{Code: 3, Reason: job.ExitCode, Message: "exit code 3"}},
		"signal": {order("kill -USR1 $$"), api.Exit{Code: 0}},
		"oom": {order("dd if=/dev/zero of=/dev/shm/x bs=1M count=60", func(o *api.RunOrder) { o.Allocation.MemBytes = 32 << 20 }),
			api.Exit{Code: 137, Signal: 9, Reason: job.OOM, Message: "out of memory: killed at 32 MiB of 32 MiB"}},
		"command": {order("", func(o *api.RunOrder) { o.Spec.Request.Docker.Command = job.Command{Line: "nosuch --flag"} }),
			api.Exit{Code: 127, Reason: job.BadSpec, Message: `command "nosuch" is not in the image`}},
		"user": {order("true", func(o *api.RunOrder) { o.Spec.Request.Docker.User = "carol" }),
			api.Exit{Code: 125, Reason: job.BadSpec, Message: `image has no user "carol" in /etc/passwd`}},
	}
	n := 0
	for name, tc := range tests {
		n++
		t.Run(name, func(t *testing.T) {
			e, out := s.run(rankID(n), tc.order)
			if diff := cmp.Diff(&tc.want, e, ignoreFigures); diff != "" {
				t.Errorf("exit (-want +got):\n%s\noutput: %s", diff, out)
			}
		})
	}
	if len(s.last.Unhealthy) > 0 {
		t.Errorf("jobs' own faults made the node unhealthy: %s", strings.Join(s.last.Unhealthy, "; "))
	}
}
