package noded

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"gbatch/cgroups"
	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/config"
	"gbatch/oci"
	"gbatch/oci/draft"
	"gbatch/oci/handed"
	"gbatch/oci/image"
	"gbatch/oci/ref"
)

// BenchmarkTrue runs containers of `true`, as many at once as the node has
// cores, from order to end as the controller hears of it.
func BenchmarkTrue(b *testing.B) {
	s := newSite(b, func(c *config.Config) { c.Cores = 4 }).start()
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
	s.onStatus = func(st node.RankStatus) {
		if st.Phase == node.PhaseEnded && st.ID.Job > 1 && !seen[st.ID] {
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

// BenchmarkBareRuntime is BenchmarkTrue without the daemon: the same container
// prepared, run and removed by package oci alone, as many at once.
func BenchmarkBareRuntime(b *testing.B) {
	s := newSite(b, nil).start()
	s.run(rankID(1), order("true"))
	name, _, err := ref.Parse(testReg.image)
	if err != nil {
		b.Fatal(err)
	}
	img, err := s.a.images.Store.Pull(b.Context(), image.PullRequest{Ref: name})
	if err != nil {
		b.Fatal(err)
	}
	top := b.TempDir()
	once := func(i int) error {
		id := fmt.Sprintf("bare.%d", i)
		spec, err := draft.Build(draft.Request{
			Command: []string{"true"}, Network: draft.Network{Host: true}, CgroupPath: s.a.host.CgroupPrefix() + "/" + id,
			Limits: cgroups.Limits{MemoryBytes: 256 << 20, Pids: 1000},
		})
		if err != nil {
			return err
		}
		box := filepath.Join(top, id)
		if err := oci.Prepare(box, spec, oci.ShimConfig{ID: id, Layers: img.Layers}); err != nil {
			return err
		}
		container, err := new(oci.Pool).Start(box, handed.Handover{})
		if err != nil {
			return err
		}
		<-container.Done()
		if e, err := container.Exit(); err != nil || e.Code != 0 {
			return fmt.Errorf("exit %+v: %w", e, err)
		}
		return oci.Remove(box)
	}
	b.ResetTimer()
	var g errgroup.Group
	g.SetLimit(4)
	for i := range b.N {
		g.Go(func() error { return once(i) })
	}
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}
