package usage

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// TestAdvise: what costs most is said first, and nothing of what was used well, nor
// where nothing is known.
func TestAdvise(t *testing.T) {
	const cores, mem = 8, 32 << 30
	lazy := &node.GPUUse{Utilization: 12, Samples: 100}
	for name, tc := range map[string]struct {
		state job.State
		used  api.Used
		want  []string
	}{
		"little used": {job.Finished, api.Used{ElapsedS: 3600, CPUTimeS: 4000, PeakMem: 3 << 30, GPU: lazy}, []string{
			"its GPUs were busy 12% of the time: ask for fewer or for a share (--gpus 0.5), or feed them faster",
			"1.1 of its 8 cores were busy: --cpus 2 would do"}},
		"memory": {job.Failed, api.Used{ElapsedS: 3600, CPUTimeS: 8 * 3500, PeakMem: 1500 << 20}, []string{"it used 1.5G of 32G at most: --mem 2G would do"}},
		"short of memory, long limit": {job.Finished, api.Used{ElapsedS: 3600, CPUTimeS: 8 * 3500, PeakMem: 31 << 30}, []string{
			"it came within 3% of its memory: --mem 38G is safer",
			"it took 25% of its time limit: -t 1:19:00 lets it start sooner"}},
		"beyond its memory": {job.Failed, api.Used{ElapsedS: 3600, CPUTimeS: 8 * 3500, PeakMem: 33 << 30}, []string{"it came within 0% of its memory: --mem 40G is safer"}},
		"well":              {job.Running, api.Used{ElapsedS: 600, CPUTimeS: 8 * 590, PeakMem: 20 << 30, GPU: &node.GPUUse{Samples: 4, Simulated: true}}, nil},
		"short":             {job.Failed, api.Used{ElapsedS: 3, CPUTimeS: 1}, []string{"it ran for 3 s: too short for advice"}},
	} {
		t.Run(name, func(t *testing.T) {
			j := &state.Job{State: tc.state, Request: &state.Request{Limit: 4 * sched.Hour}, Attempt: &state.Attempt{Ranks: make([]state.Rank, 1)}}
			u := tc.used
			u.Cores, u.MemBytes, u.NodesKnown = cores, mem, 1
			Advise(j, &u)
			if diff := cmp.Diff(tc.want, u.Advice); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			u.Advice, u.NodesKnown = nil, 0
			if Advise(j, &u); u.Advice != nil {
				t.Errorf("advice of a job of which nothing is known: %q", u.Advice)
			}
		})
	}
	Advise(&state.Job{}, nil)
	Advise(&state.Job{}, &api.Used{})
}
