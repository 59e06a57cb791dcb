package control

import (
	"gbatch/internal/state"
)

// evict moves jobs that ended long ago out of the table into history, a
// bounded number each time so that no step takes long.
func (e Tick) evict(c *step) {
	const most = 512
	done := 0
	for done < most && len(c.jobs.ended) > 0 && !c.depends.Pending() { // who waits for one hears of its end first
		j := c.job(c.jobs.ended[0])
		if len(c.jobs.ended) <= c.cfg.KeepCount && c.now-j.Ended < c.cfg.KeepEnded {
			break
		}
		c.jobs.remove(j)
		c.out.record(state.Record{Kind: state.KindJob, Job: j.Number})
		if !c.cfg.NoRecords {
			c.out.record(state.Record{Kind: state.KindHistory, Job: j.Number, Value: j.EncodeHistory()})
		}
		if j.Tasks != nil {
			for _, r := range j.Tasks.Dropped(j.Number) {
				c.out.record(r)
			}
		}
		c.out.record(state.Record{Kind: state.KindUUID, Name: string(j.UUID[:]), Job: j.Number, Value: []byte{}})
		done++
	}
	if done > 0 {
		c.jobs.table.Trim()
	}
}
