package noded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/config"
)

// ignoreFigures are the parts of an exit that differ from run to run, and whether anything was written.
var ignoreFigures = cmpopts.IgnoreFields(node.Exit{}, "StartedMS", "EndedMS", "FreeMS", "PeakMem", "CPUSeconds", "Silent")

func TestHelloWorld(t *testing.T) {
	s := newSite(t, nil).start()
	e, out := s.run(rankID(1), order("echo hello; echo world >&2"))
	if diff := cmp.Diff(&node.Exit{}, e, ignoreFigures); diff != "" {
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
		want  node.Exit
	}{
		"code":   {order("exit 3"), node.Exit{Code: 3, Reason: job.ExitCode, Message: "exit code 3"}},
		"signal": {order("kill -USR1 $$"), node.Exit{Code: 0}},
		"oom": {order("dd if=/dev/zero of=/dev/shm/x bs=1M count=60", func(o *api.RunOrder) { o.Allocation.MemBytes = 32 << 20 }),
			node.Exit{Code: 137, Signal: 9, Reason: job.OOM, Message: "out of memory: killed at 32 MiB of 32 MiB"}},
		"command": {order("", func(o *api.RunOrder) { o.Spec.Request.Docker.Command = job.Command{Line: "nosuch --flag"} }),
			node.Exit{Code: 127, Reason: job.BadSpec, Message: `command "nosuch" is not in the image`}},
		"user": {order("true", func(o *api.RunOrder) { o.Spec.Request.Docker.User = "carol" }),
			node.Exit{Code: 125, Reason: job.BadSpec, Message: `image has no user "carol" in /etc/passwd`}},
	}
	n := 0
	for name, tc := range tests {
		n++
		t.Run(name, func(t *testing.T) {
			e, out := s.run(rankID(n), tc.order)
			if diff := cmp.Diff(&tc.want, e, ignoreFigures); diff != "" {
				t.Errorf("exit (-want +got):\n%s\noutput: %s", diff, out)
			}
			if e.Silent != (out == "") {
				t.Errorf("silent is %t, output: %q", e.Silent, out)
			}
		})
	}
	if list := s.unhealthy(); len(list) > 0 {
		t.Errorf("jobs' own faults made the node unhealthy: %s", strings.Join(list, "; "))
	}
}

// TestEnvironment: a job sees GPULab's variables, the one it named
// for its project's gid, and its own cores and memory.
func TestEnvironment(t *testing.T) {
	s := newSite(t, func(c *config.Config) { c.ClusterID, c.Cores = 7, 0 }).start()
	o := order("env", func(o *api.RunOrder) {
		o.Spec.Request.Docker.Environment = map[string]string{"MINE": "1 2"}
		o.Spec.Request.Docker.ProjectGIDVariable = "PGID"
		o.Spec.Request.Docker.WorkingDir = "/tmp"
	})
	id := job.RankID{Job: 12, Task: 3, Attempt: 2}
	_, out := s.run(id, o)
	got := map[string]string{}
	for line := range strings.Lines(out) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), "=")
		got[k] = v
	}
	want := map[string]string{
		"GPULAB_CLUSTER_ID": "7", "GPULAB_CPUS_RESERVED": s.phase(id, node.PhaseEnded).Cores, "GPULAB_GPUS_RESERVED": "",
		"GPULAB_JOB_ID": o.UUID, "GPULAB_MEM_RESERVED": "256m", "GPULAB_PROJECT": "proj",
		"GPULAB_RESTART_COUNT": "1", "GPULAB_RESTART_INITIAL_JOB_ID": o.UUID,
		"GPULAB_SLAVE_DNSNAME": s.a.host.DNS, "GPULAB_SLAVE_HOSTNAME": s.cfg.Name, "GPULAB_SLAVE_INSTANCE_ID": s.a.instance,
		"GPULAB_SLAVE_PID": strconv.Itoa(os.Getpid()), "GPULAB_USERNAME": "alice", "GPULAB_VERSION": "test", "GPULAB_WORKER_ID": "0",
		"PGID": "4242", "MINE": "1 2", "GBATCH_ATTEMPT": "2", "GBATCH_RESTART_COUNT": "1", "GBATCH_TASK": "3", "PWD": "/tmp",
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s=%q, want %q", k, got[k], v)
		}
	}
	if cores := s.phase(id, node.PhaseEnded).Cores; len(cores) != 1 {
		t.Errorf("cores %q: want one", cores)
	}
}

// TestHostFiles: names resolve in a container as they do on the host.
func TestHostFiles(t *testing.T) {
	s := newSite(t, func(c *config.Config) { c.Network.AllowHost = true }).start()
	const look = "hostname; grep -c $(hostname) /etc/hosts; echo 10.9.8.7 x >> /etc/hosts; tail -n1 /etc/hosts"
	for i, tc := range []struct {
		network job.Network
		want    string
	}{{job.NetworkHost, s.a.host.Name}, {job.NetworkBridge, "job-2"}} {
		_, out := s.run(rankID(i+1), order(look, func(o *api.RunOrder) { o.Spec.Gbatch = &job.Gbatch{Network: tc.network} }))
		lines := strings.Split(out, "\n")
		if lines[0] != tc.want || lines[1] == "0" || lines[2] != "10.9.8.7 x" {
			t.Errorf("network %s: output %q", tc.network, out)
		}
	}
	if text, err := os.ReadFile("/etc/hosts"); err != nil || strings.Contains(string(text), "10.9.8.7") {
		t.Errorf("a job wrote to the host's file: %v", err)
	}
}

// TestShortJobs: many at once, more than may start at a time; none is lost,
// none runs twice, and what they had is free again.
func TestShortJobs(t *testing.T) {
	s := newSite(t, nil).start()
	const n = 24
	for i := range n {
		s.want(rankID(i+1), order(fmt.Sprintf("exit %d", i%3)))
	}
	for i := range n {
		if e := s.exit(rankID(i + 1)); e.Code != i%3 {
			t.Errorf("rank %d: %+v", i+1, e)
		}
		s.drop(rankID(i + 1))
	}
	s.holdsNothing()
	_, coresErr := s.a.cores.Take(rankID(n+1), s.a.cores.Offered, nil)
	_, imagesErr := s.a.images.Collect(time.Now())
	if images := s.a.images.Store.Holds(); errors.Join(coresErr, imagesErr) != nil || len(s.a.slots) != 0 || len(images) != 0 {
		t.Errorf("held after the end: cores %v, slots %d, images %v %v", coresErr, len(s.a.slots), images, imagesErr)
	}
}

// TestOrderedAgain: a rank that ended and was let go of does not run a second
// time when it is ordered again, not even by another daemon.
func TestOrderedAgain(t *testing.T) {
	s := newSite(t, func(c *config.Config) {
		c.Storage = []config.StorageRoot{{Name: "/project", Path: shared(t)}}
	}).start()
	id := rankID(1)
	o := order("echo run >> /p/count; exit 4", func(o *api.RunOrder) {
		o.Spec.Request.Docker.Storage = []job.Storage{{HostPath: "/project", ContainerPath: "/p"}}
	})
	for try := range 3 {
		if try == 2 {
			s.halt()
			s.start()
		}
		s.unlearn(id)
		if e, _ := s.run(id, o); e.Code != 4 || e.Reason != job.ExitCode {
			t.Fatalf("try %d: %+v", try, e)
		}
		s.holdsNothing()
	}
	text, err := os.ReadFile(filepath.Join(s.cfg.Storage[0].Path, "count"))
	if diff := cmp.Diff("run\n", string(text)); diff != "" || err != nil {
		t.Errorf("runs (-want +got):\n%s%v", diff, err)
	}
}
