package control

import (
	"cmp"
	"slices"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// evict moves jobs that ended long ago out of the table into history, a
// bounded number each time so that no step takes long.
func (c *step) evict() {
	const most = 512
	done := 0
	for done < most && len(c.ended) > 0 && len(c.unsettled) == 0 { // who waits for one hears of its end first
		j := c.job(c.ended[0])
		if len(c.ended) <= c.cfg.KeepCount && c.now-j.Ended < c.cfg.KeepEnded {
			break
		}
		c.ended = c.ended[1:]
		c.jobs.Put(j.Number, nil)
		delete(c.byUUID, j.UUID)
		c.record(state.Record{Kind: state.KindJob, Job: j.Number})
		if !c.cfg.NoRecords {
			c.record(state.Record{Kind: state.KindHistory, Job: j.Number, Value: j.EncodeHistory()})
		}
		if j.Tasks != nil {
			for _, r := range j.Tasks.Dropped(j.Number) {
				c.record(r)
			}
		}
		c.record(state.Record{Kind: state.KindUUID, Name: string(j.UUID[:]), Job: j.Number, Value: []byte{}})
		done++
	}
	if done > 0 {
		c.jobs.Trim()
	}
}

// sortEnded puts the ended jobs in the order they ended, after a load: tasks
// before their array.
func (c *Controller) sortEnded() {
	slices.SortFunc(c.ended, func(a, b job.Number) int {
		return cmp.Or(cmp.Compare(c.job(a).Ended, c.job(b).Ended), cmp.Compare(c.job(b).Parent, c.job(a).Parent), cmp.Compare(a, b))
	})
}
