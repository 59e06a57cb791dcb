package ctld

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// BenchmarkEnded is lists of 100 jobs, each after something has changed, where few and where many have ended; with what
// processor time they take the client and the controller together, and the heap for each more that has ended.
func BenchmarkEnded(b *testing.B) {
	s, c, _ := bench(b, b.TempDir())
	n := &endingNode{c: c, held: map[job.RankID]node.RankStatus{}}
	n.sync(b, &node.Inventory{Hostname: "n1", Cluster: 1, Bridge: true, Gang: true, CPUs: 256, MemBytes: 1 << 40})
	const few, many = 5_000, 45_000
	var before int64
	for _, count := range []int{few, many} {
		for s.loop.View().States()[job.Finished] < count {
			fill(b, s, 50)
			for s.loop.View().States()[job.Queued]+len(s.loop.View().Node("n1").Jobs) > 0 {
				n.sync(b, nil)
			}
		}
		after := heap()
		for _, kind := range []struct {
			name string
			f    client.JobFilter
		}{
			{"all", client.JobFilter{All: true, Limit: 100}}, {"of-a-user", client.JobFilter{All: true, User: "user7", Limit: 100}},
			{"live", client.JobFilter{Limit: 100}}, {"running", client.JobFilter{States: []job.State{job.Running}, Limit: 100}},
		} {
			b.Run(fmt.Sprintf("%d/%s", count, kind.name), func(b *testing.B) {
				benchList(b, c, kind.f)
				if count == many {
					b.ReportMetric(float64(after-before)/(many-few), "heap-B/ended")
				}
			})
		}
		if r, err := c.Action(b.Context(), "cancel", &api.ActionRequest{State: string(job.OnHold)}); err != nil {
			b.Fatal(r, err)
		}
		before = after
	}
}

// benchList is lists, before each of which another job is submitted.
func benchList(b *testing.B, c *client.Client, f client.JobFilter) {
	var used time.Duration
	for b.Loop() {
		b.StopTimer()
		if _, err := c.Submit(b.Context(), &api.SubmitRequest{Job: hello(1).Job, Hold: true}, ""); err != nil {
			b.Fatal(err)
		}
		began := processorTime()
		b.StartTimer()
		if _, err := c.Jobs(b.Context(), f); err != nil {
			b.Fatal(err)
		}
		used += processorTime() - began
	}
	b.ReportMetric(used.Seconds()*1e3/float64(b.N), "cpu-ms/op")
}

// endingNode is a node whose ranks have run as soon as it hears of them.
type endingNode struct {
	c       *client.Client
	held    map[job.RankID]node.RankStatus
	seen    uint64
	records string
}

func (n *endingNode) sync(b *testing.B, inv *node.Inventory) {
	b.Helper()
	req := &api.SyncRequest{Instance: strings.Repeat("0f", 16), Boot: "b", InventoryHash: "h", Inventory: inv, Seen: n.seen, Records: n.records, Ranks: []node.RankStatus{}}
	for _, st := range n.held {
		req.Ranks = append(req.Ranks, st)
	}
	resp, err := n.c.NodeSync(b.Context(), "n1", req)
	if err != nil {
		b.Fatal(err)
	}
	if n.records = resp.Records; !resp.Changed {
		return
	}
	n.seen = resp.Version
	wanted := map[job.RankID]bool{}
	for _, o := range resp.Desired {
		if wanted[o.ID] = true; o.Run != nil {
			now := time.Now().UnixMilli()
			n.held[o.ID] = node.RankStatus{
				ID: o.ID, UUID: o.UUID, Phase: node.PhaseEnded, Cores: fmt.Sprint(o.ID.Job % 256), Image: "sha256:" + strings.Repeat("0f", 32), StartedMS: now,
				Exit: &node.Exit{StartedMS: now, EndedMS: now + 10, PeakMem: 1 << 20, CPUSeconds: 0.002},
			}
		}
	}
	maps.DeleteFunc(n.held, func(id job.RankID, _ node.RankStatus) bool { return !wanted[id] })
}
