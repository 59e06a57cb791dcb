package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
)

// TestWholeNode: a script for whole nodes has all cores, memory and GPUs of the
// node, one for all memory has no more cores and GPUs than it asks for, and who
// waits is told why.
func TestWholeNode(t *testing.T) {
	s := newSite(t, siteOptions{nodeConfig: "gpu: {simulate: \"h100:4\"}\n", ctldConfig: quick})
	has := func(options string) string {
		return s.file("#!/bin/sh\n#SBATCH --image=" + image + " " + options +
			"\necho $GBATCH_NUM_CPUS $GBATCH_MEMORY_BYTES $GBATCH_NUM_GPUS; trap 'exit 0' TERM; sleep 1000 & wait\n")
	}
	all := s.node(0).MemBytes.Total >> 20 << 20 // whole MiB
	for _, tc := range []struct {
		options, waits string
		cpus, gpus     int64
	}{
		{"--exclusive -c 2", "needs 1 core and 1 GiB", 8, 4},
		{"--mem=0 -c 2 --gpus=1", "GiB free", 2, 1},
	} {
		id := has(tc.options)
		d := s.waitRunning(id)
		eventually(t, "the job says what it has", func() bool { return s.run("glog", id).out != "" })
		if diff := cmp.Diff(fmt.Sprintf("%d %d %d\n", tc.cpus, all, tc.gpus), s.must("glog", id)); diff != "" {
			t.Errorf("%s: what the job sees (-want +got):\n%s", tc.options, diff)
		}
		if d.CPUs != int(tc.cpus) || d.MemBytes != all || d.GPUs != float64(tc.gpus) {
			t.Errorf("%s: shown with %d cores, %d bytes and %v GPUs", tc.options, d.CPUs, d.MemBytes, d.GPUs)
		}
		other := s.submit(doc{command: []string{"true"}})
		eventually(t, "it is said why another one waits", func() bool { return strings.Contains(s.job(other).ReasonText, tc.waits) })
		s.must("gcancel", id)
		if d := s.wait(other); d.State != job.Finished {
			t.Errorf("%s", describe(d))
		}
	}
}
