package state

import (
	"fmt"
	"iter"
	"reflect"

	"gbatch/accounting"
	"gbatch/internal/node"
	"gbatch/sched"
)

// settled is the last attempt of a job that is over in a quarter of the memory: where its ranks ran is shared with
// others that ran there, and what few attempts have takes no room.
type settled struct {
	rank       settledRank // 0
	start, end sched.Time
	given      sched.Time
	more       *moreSettled // nil: it has none of that
}

// settledRank is one rank. The first has what there is once of an attempt.
type settledRank struct {
	*place
	attempt          uint32
	alone            bool
	silent, stopping bool
	knew, begun      sched.Time
	pullMS           int64
	exit             *node.Exit // nil: its program ended well, and what is below says how
	startedMS        int64
	endedMS, freeMS  int64
	peakMem          int64
	cpuSeconds       float64
	gpu              *node.GPUUse
}

// moreSettled is what most attempts have not.
type moreSettled struct {
	others   []settledRank // of a gang
	launches *Launches
	used     accounting.Amount // where the job used more, by earlier attempts
}

// place is where a rank ran, and what.
type place struct {
	alloc     sched.Allocation
	where     where
	rankImage string
}

// where is what of a place can be compared as it is.
type where struct {
	cluster                           int
	model, instance, partition, cores string
	image                             string
}

// placeKey tells places apart.
type placeKey struct {
	where
	rankImage, node, gpus     string
	milliCPU, memMiB, diskMiB int64
}

// place is the kept copy of where a rank ran.
func (in *Interner) place(at *Attempt, r *Rank) *place {
	p := &place{alloc: r.Alloc, where: where{r.Cluster, r.Model, r.Instance, at.Partition, r.Cores, at.Image}, rankImage: r.Image}
	k := placeKey{where: p.where, rankImage: r.Image, node: r.Alloc.Node, milliCPU: r.Alloc.MilliCPU, memMiB: r.Alloc.MemMiB, diskMiB: r.Alloc.DiskMiB}
	if len(r.Alloc.GPUs) > 0 {
		k.gpus = fmt.Sprint(r.Alloc.GPUs)
	}
	return in.places.of(k, p)
}

// Settle has a job that is over, and that nobody else has yet, keep nothing of the queue, and its last attempt in less
// memory. Last still says all of it. Where that has more than most have it stays as it is.
func (j *Job) Settle(in *Interner) {
	if !j.State.Final() {
		return
	}
	j.Ref = sched.Ref{}
	if j.Attempt == nil || len(j.Attempt.Ranks) == 0 {
		return
	}
	at := *j.Attempt
	s := &settled{start: at.Start, end: at.End, given: at.Given}
	if len(at.Ranks) > 1 || at.Launches != nil || at.Used != j.Used {
		s.more = &moreSettled{launches: at.Launches, used: at.Used}
	}
	for i := range at.Ranks {
		r, ok := settle(&at.Ranks[i])
		if !ok {
			return
		}
		if r.place = in.place(j.Attempt, &at.Ranks[i]); i == 0 {
			s.rank = r
		} else {
			s.more.others = append(s.more.others, r)
		}
	}
	s.rank.attempt, s.rank.alone = at.Attempt, at.Alone
	at.Attempt, at.Start, at.End, at.Given, at.Launches, at.Alone, at.Ranks = 0, 0, 0, 0, nil, false, nil
	at.Partition, at.Image, at.Used = "", "", accounting.Amount{}
	if reflect.ValueOf(&at).Elem().IsZero() {
		j.Attempt, j.settled = nil, s
	}
}

// settle is a rank but for its place; not ok: it has more.
func settle(rank *Rank) (s settledRank, ok bool) {
	r := *rank
	if r.Exit == nil || r.Phase != node.PhaseEnded {
		return s, false
	}
	e := *r.Exit
	s = settledRank{
		stopping: r.Stopping, knew: r.Knew, begun: r.Begun, pullMS: r.PullMS,
		startedMS: e.StartedMS, endedMS: e.EndedMS, freeMS: e.FreeMS, peakMem: e.PeakMem, cpuSeconds: e.CPUSeconds, gpu: e.GPU, silent: e.Silent,
	}
	if e.StartedMS, e.EndedMS, e.FreeMS, e.PeakMem, e.CPUSeconds, e.GPU, e.Silent = 0, 0, 0, 0, 0, nil, false; e != (node.Exit{}) {
		s.exit = r.Exit
	}
	r.Stopping, r.Knew, r.Begun, r.PullMS, r.Exit, r.Phase = false, 0, 0, 0, nil, ""
	r.Alloc, r.Cluster, r.Model, r.Instance, r.Cores, r.Image = sched.Allocation{}, 0, "", "", "", ""
	return s, reflect.ValueOf(&r).Elem().IsZero()
}

// Last is the last attempt of a job, nil if it had none. Of one that is over Attempt may be nil, see Settle.
func (j *Job) Last() *Attempt {
	s := j.settled
	if s == nil {
		return j.Attempt
	}
	type whole struct { // in one piece of memory
		Attempt
		rank [1]Rank
		exit [1]node.Exit
	}
	w := &whole{Attempt: Attempt{
		Attempt: s.rank.attempt, Start: s.start, End: s.end, Given: s.given, Alone: s.rank.alone,
		Image: s.rank.where.image, Partition: s.rank.where.partition, Used: j.Used,
	}}
	ranks, exits, others := w.rank[:], w.exit[:], []settledRank(nil)
	if m := s.more; m != nil {
		w.Launches, w.Used, others = m.launches, m.used, m.others
		if len(others) > 0 {
			ranks, exits = make([]Rank, 1+len(others)), make([]node.Exit, 1+len(others))
		}
	}
	s.rank.tell(&ranks[0], &exits[0])
	for i := range others {
		others[i].tell(&ranks[1+i], &exits[1+i])
	}
	w.Ranks = ranks
	return &w.Attempt
}

// tell makes the rank again, with room for its exit.
func (s *settledRank) tell(r *Rank, room *node.Exit) {
	*r = Rank{
		Alloc: s.alloc, Model: s.where.model, Cluster: s.where.cluster, Instance: s.where.instance, Cores: s.where.cores, Image: s.rankImage,
		Phase: node.PhaseEnded, Knew: s.knew, Begun: s.begun, PullMS: s.pullMS, Stopping: s.stopping, Exit: s.exit,
	}
	if s.exit == nil {
		*room = node.Exit{StartedMS: s.startedMS, EndedMS: s.endedMS, FreeMS: s.freeMS, PeakMem: s.peakMem, CPUSeconds: s.cpuSeconds, GPU: s.gpu, Silent: s.silent}
		r.Exit = room
	}
}

// Try is the number of the last attempt; 0: there was none.
func (j *Job) Try() uint32 {
	switch {
	case j.settled != nil:
		return j.settled.rank.attempt
	case j.Attempt != nil:
		return j.Attempt.Attempt
	}
	return 0
}

// Where is in which cluster and partition the last attempt was; 0 and empty where it is not said.
func (j *Job) Where() (cluster int, partition string) {
	switch at, s := j.Attempt, j.settled; {
	case s != nil:
		return s.rank.where.cluster, s.rank.where.partition
	case at != nil && len(at.Ranks) > 0:
		return at.Ranks[0].Cluster, at.Partition
	}
	return 0, ""
}

// Nodes yields those of the last attempt, of each rank.
func (j *Job) Nodes() iter.Seq[string] {
	return func(yield func(string) bool) {
		if s := j.settled; s != nil {
			if !yield(s.rank.alloc.Node) || s.more == nil {
				return
			}
			for i := range s.more.others {
				if !yield(s.more.others[i].alloc.Node) {
					return
				}
			}
		} else if j.Attempt != nil {
			for i := range j.Attempt.Ranks {
				if !yield(j.Attempt.Ranks[i].Alloc.Node) {
					return
				}
			}
		}
	}
}

// asStored is the job with its last attempt as records have it.
func (j *Job) asStored() *Job {
	if j.settled == nil {
		return j
	}
	v := *j
	v.Attempt, v.settled = j.Last(), nil
	return &v
}
