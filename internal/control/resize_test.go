package control

import (
	"fmt"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/sched/words"
)

// resized is the answer of a job's node to what it was asked to give.
func (w *world) resized(n job.Number, failed string) string {
	j := w.c.jobs.get(n)
	r := j.Attempt.Ranks[0]
	v := w.c.nodes.get(r.Alloc.Node)
	st := node.RankStatus{ID: j.RankID(0), Phase: r.Phase, Resize: &node.Resized{Seq: r.Resize.Seq, Error: failed}}
	for range 2 { // it says so again and again
		w.apply(NodeSync{Name: v.Name, Instance: v.Instance, Hash: v.Hash, Ranks: []node.RankStatus{st}})
	}
	text := "done"
	if q := w.c.jobs.get(n).Attempt.Ranks[0].Resize; q != nil {
		text = "failed: " + q.Failed
	}
	return fmt.Sprintf("%s; it holds %s\n", text, words.Size(w.c.jobs.get(n).Attempt.Ranks[0].Alloc))
}

// usage is what ann was charged, undecayed: core-seconds and GiB-seconds.
func (w *world) usage() string {
	for _, r := range w.c.ledger.Rows(int64(w.now)) {
		return fmt.Sprintf("%d core-s, %d GiB-s\n", r.Total.MilliCPU/1_000_000, r.Total.MemMiB/1024/1000)
	}
	return "nothing\n"
}
