package noded

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/noded/config"
)

// podOrder is witnessOrder with a sidecar and a program beside it, each of which says at its
// begin and at its end that it did, and how it was told to end.
func podOrder(ms int) *api.RunOrder {
	o := witnessOrder(ms)
	own := o.Spec.Request.Docker
	program := func(name, line string) job.Before {
		line = fmt.Sprintf("f=/w/%s-$GBATCH_JOB_NUMBER; echo begin >> $f; %s; echo end >> $f", name, line)
		return job.Before{Name: name, Image: own.Image, Storage: own.Storage, Command: job.Command{Argv: []string{"/bin/sh", "-c", line}}}
	}
	side := program("side", "trap 'echo end >> $f; exit 0' TERM; while :; do usleep 20000; done")
	side.Sidecar = true
	o.Spec.Gbatch = &job.Gbatch{Before: []job.Before{side}, Beside: []job.Before{program("mate", fmt.Sprintf("usleep %d", ms*1000))}}
	return o
}

// TestKilledWithSeveral kills the daemon where a rank of several programs begins and ends:
// each of them runs exactly once, and nothing of it stays on the machine.
func TestKilledWithSeveral(t *testing.T) {
	for i, point := range []string{"before record", "before container", "started", "exited", "cleaned", "undone"} {
		t.Run(strings.ReplaceAll(point, " ", "-"), func(t *testing.T) {
			witness := shared(t)
			s := newSite(t, func(c *config.Config) { c.Storage = []config.StorageRoot{{Name: "/witness", Path: witness}} })
			s.killAt = point
			p := s.spawn(0)
			id := rankID(i + 1)
			s.want(id, podOrder(100))
			p.died()
			s.killAt = ""
			p = s.spawn(1)
			if e := s.exit(id); e.Code != i+1 {
				t.Errorf("it ended with %+v", e)
			}
			for _, name := range []string{"", "side-", "mate-"} {
				data, _ := os.ReadFile(filepath.Join(witness, name+fmt.Sprint(i+1)))
				words := slices.DeleteFunc(strings.Fields(string(data)), func(w string) bool { return w == fmt.Sprint(i+1) })
				if !slices.Equal(words, []string{"begin", "end"}) {
					t.Errorf("%q wrote %q", name, data)
				}
			}
			s.empty()
			s.leavesNothing()
			p.term()
			if t.Failed() {
				t.Log(p.text())
			}
		})
	}
}

// TestLeaseWithSeveral: all programs of a rank end with the node's lease while no daemon is there.
func TestLeaseWithSeveral(t *testing.T) {
	witness := shared(t)
	s := newSite(t, func(c *config.Config) { c.Storage = []config.StorageRoot{{Name: "/witness", Path: witness}} })
	s.leaseMS = 4000
	p := s.spawn(0)
	id := rankID(1)
	s.want(id, podOrder(1000_000))
	for _, name := range []string{"1", "side-1", "mate-1"} {
		until(t, name+" to begin", func() bool { _, err := os.Stat(filepath.Join(witness, name)); return err == nil })
	}
	p.kill()
	until(t, "the rank to end without a daemon", func() bool {
		_, err := os.Stat(filepath.Join(s.cfg.StateDir, "ranks", id.String(), "box", "exit.json"))
		return err == nil
	})
	p = s.spawn(1)
	if e := s.exit(id); e.Reason != job.NodeFail {
		t.Errorf("it ended with %+v", e)
	}
	s.empty()
	s.leavesNothing()
	p.term()
}
