package noded

import (
	"slices"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

// BenchmarkTrue runs containers of `true`, as many at once as the node has
// cores, from order to end as the controller hears of it.
func BenchmarkTrue(b *testing.B) {
	s := newSite(b, func(c *Config) { c.Cores = 4 }).start()
	s.run(rankID(1), order("true"))
	s.mu.Lock()
	digest := s.status[rankID(1)].Image
	s.mu.Unlock()
	run := order("true", func(o *api.RunOrder) {
		o.Digest = digest
		o.Spec.Request.Docker.Command = job.Command{Argv: []string{"true"}}
	})
	b.ResetTimer()
	slots := make(chan struct{}, 4)
	ended := make(chan job.RankID, b.N)
	s.mu.Lock()
	seen := map[job.RankID]bool{}
	s.onStatus = func(st api.RankStatus) {
		if st.Phase == api.PhaseEnded && st.ID.Job > 1 && !seen[st.ID] {
			seen[st.ID] = true
			ended <- st.ID
		}
	}
	s.mu.Unlock()
	go func() {
		for i := range b.N {
			slots <- struct{}{}
			s.want(rankID(i+2), run)
		}
	}()
	for range b.N {
		id := <-ended
		s.drop(id)
		<-slots
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	b.StopTimer()
	s.holdsNothing()
}

// BenchmarkFirstInstruction is the time from an order on an idle node to the
// program's begin.
func BenchmarkFirstInstruction(b *testing.B) {
	s := newSite(b, nil).start()
	s.run(rankID(1), order("true"))
	var took []time.Duration
	for i := range b.N {
		id := rankID(i + 2)
		before := time.Now()
		e, _ := s.run(id, order("true"))
		took = append(took, time.UnixMilli(e.StartedMS).Sub(before.Truncate(time.Millisecond)))
		s.holdsNothing()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "ms-median")
}
