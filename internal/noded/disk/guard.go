package disk

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/internal/noded/config"
)

// lookEvery is how often free space is looked at, which costs next to nothing;
// measureEvery, how often what ranks wrote is, unless much was written meanwhile.
const (
	lookEvery    = 250 * time.Millisecond
	measureEvery = 20 * time.Second
)

// Run ends ranks that wrote too much, until ctx ends.
func (d *Disk) Run(ctx context.Context) {
	last := map[*area]seen{}
	for client.Sleep(ctx, lookEvery) == nil {
		d.mu.Lock()
		areas := slices.Clone(d.areas)
		d.mu.Unlock()
		for _, a := range areas {
			last[a] = d.look(a, last[a])
		}
	}
}

// seen is when the ranks' files were measured, how long that took, and how much
// was free then.
type seen struct {
	at   time.Time
	took time.Duration
	free int64
}

// look looks at one file system.
func (d *Disk) look(a *area, last seen) seen {
	free, err := a.free()
	if err != nil {
		return last // the node's health has it
	}
	floor := int64(d.cfg.MinFree) / 2
	if free < nearlyFull {
		d.spoilt.Store(true)
	}
	since := time.Since(last.at)
	much := last.free-free > min(usualLimit(d.cfg, a.size), max(last.free-floor, 0))/4
	if since >= measureEvery || (free < floor || much) && since > 10*last.took {
		at := time.Now()
		d.measure(a)
		last = seen{at, time.Since(at), free}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, text := range toEnd(d.uses(a), free, floor) {
		d.log.Warn("ending rank for what it wrote", "rank", id, "text", text)
		d.ranks[id].ended = true
		d.over(id, text)
	}
	return last
}

// measure looks at what the ranks on a file system have written.
func (d *Disk) measure(a *area) {
	d.mu.Lock()
	ranks := slices.Collect(maps.Values(d.ranks))
	d.mu.Unlock()
	for _, s := range ranks {
		for _, p := range s.parts {
			if p.area != a {
				continue
			}
			d.mu.Lock()
			base, limit := p.base, p.limit
			d.mu.Unlock()
			// A multiple of what is too much is enough to know.
			n, err := p.size(base + 4*max(limit, 1<<30))
			if err != nil {
				d.log.Warn("look at what the rank wrote", "rank", s.ID, "error", err)
				continue
			}
			d.mu.Lock()
			p.used = max(0, n.bytes-p.base)
			d.mu.Unlock()
		}
	}
}

// use is what one rank has written on a file system, as toEnd needs it.
type use struct {
	id                    job.RankID
	user                  string
	used, limit, reserved int64
	held                  bool // to its limit, by a quota
	ended                 bool // it was told to end, and is still there
}

// uses is called with mu held.
func (d *Disk) uses(a *area) []use {
	var list []use
	for id, s := range d.ranks {
		for _, p := range s.parts {
			if p.area == a && p.limit > 0 {
				list = append(list, use{id, s.User, p.used, p.limit, s.Asked, p.image || p.project > 0, s.ended})
			}
		}
	}
	slices.SortFunc(list, func(x, y use) int { return cmp.Compare(x.id.String(), y.id.String()) })
	return list
}

// small is the part of the floor, as a divisor, of which a user is not blamed for the disk.
const small = 16

// toEnd says who has to be ended, and why. Who wrote more than it may, where
// nothing else holds it. And when less than floor is left, beside what others
// have reserved and not written yet, one that wrote without having reserved: of
// the user who did so most, and of these the one that did. Others follow only
// when that one is gone, as it takes a while to remove what it wrote. Nobody is ended where jobs have not
// filled the disk.
func toEnd(uses []use, free, floor int64) map[job.RankID]string {
	out := map[job.RankID]string{}
	var missing, all int64
	going := false
	users := map[string]int64{}
	for _, u := range uses {
		going = going || u.ended
		missing += max(0, u.reserved-u.used)
		users[u.user] += max(0, u.used-u.reserved)
		all += max(0, u.used-u.reserved)
		if u.used > u.limit && !u.held && !u.ended {
			out[u.id] = u.overLimit()
		}
	}
	if going || len(out) > 0 || free >= floor+missing {
		return out
	}
	worst := slices.MaxFunc(append(uses, use{}), func(x, y use) int {
		return cmp.Or(cmp.Compare(users[x.user], users[y.user]), cmp.Compare(x.used-x.reserved, y.used-y.reserved))
	})
	if most := users[worst.user]; most < floor/small || most < floor && free+all < floor+missing {
		return out // somebody else has filled the disk: that no job's end gives back
	}
	if worst.used > worst.reserved {
		out[worst.id] = fmt.Sprintf("%s were left on the node's disk, of which it keeps %s (half of its minFree) and what other jobs have reserved; this job had written %s without reserving it, the most: reserve it by \"diskGb\"",
			config.FormatBytes(free), config.FormatBytes(floor), config.FormatBytes(worst.used-worst.reserved))
	}
	return out
}

func (u *use) overLimit() string {
	return fmt.Sprintf("it had written %s to the node's disk, of the %s", config.FormatBytes(u.used), may(u.limit, u.reserved))
}

// may is how much a rank may write, and who said so.
func may(limit, reserved int64) string {
	if reserved > 0 {
		return config.FormatBytes(limit) + " that its job has reserved (\"diskGb\")"
	}
	return config.FormatBytes(limit) + " that a container may (disk.perContainer of the node): a job reserves more by \"diskGb\""
}

// Full says that a rank had filled what it may write, and how much that is; ""
// if it had not.
func (d *Disk) Full(id job.RankID) string {
	d.mu.Lock()
	s := d.ranks[id]
	d.mu.Unlock()
	if s == nil {
		return ""
	}
	for _, p := range s.parts {
		if p.isFull() {
			return "it had filled the " + may(p.limit, s.Asked)
		}
	}
	return ""
}

// isFull says whether a file system refuses to write more.
func (p *part) isFull() bool {
	if p.image {
		var fs unix.Statfs_t
		return unix.Statfs(p.dirs[0], &fs) == nil && (int64(fs.Bavail)*fs.Bsize < nearlyFull || fs.Ffree == 0)
	}
	if p.project == 0 {
		return false
	}
	q, err := p.area.count(p.project)
	return err == nil && q.HardBlocks > 0 && (int64(q.HardBlocks*quotaBlock)-int64(q.Bytes) < nearlyFull || q.Inodes >= q.HardInodes)
}

// nearlyFull is what may be left where a write was refused.
const nearlyFull = 1 << 20
