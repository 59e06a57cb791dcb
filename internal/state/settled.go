package state

import (
	"fmt"
	"reflect"

	"gbatch/accounting"
	"gbatch/internal/node"
	"gbatch/sched"
)

// settled is the last attempt of a job that is over, if it had one rank, as most have: in a quarter of the memory, as where
// it ran is shared with others that ran there, and what few attempts have takes no room.
type settled struct {
	*place
	attempt          uint32
	silent, stopping bool
	alone            bool
	start, end       sched.Time
	given            sched.Time
	launches         *Launches
	knew, begun      sched.Time
	pullMS           int64
	exit             *node.Exit // nil: its program ended well, and what is below says how
	startedMS        int64
	endedMS, freeMS  int64
	peakMem          int64
	cpuSeconds       float64
	gpu              *node.GPUUse
}

// place is where an attempt ran, and what.
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

// place is the kept copy of where an attempt ran.
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
	if j.Attempt == nil || len(j.Attempt.Ranks) != 1 || j.Attempt.Ranks[0].Exit == nil || j.Attempt.Used != j.Used {
		return
	}
	at, r := *j.Attempt, j.Attempt.Ranks[0]
	e := *r.Exit
	s := &settled{
		attempt: at.Attempt, start: at.Start, end: at.End, given: at.Given, launches: at.Launches, alone: at.Alone,
		stopping: r.Stopping, knew: r.Knew, begun: r.Begun, pullMS: r.PullMS,
		startedMS: e.StartedMS, endedMS: e.EndedMS, freeMS: e.FreeMS, peakMem: e.PeakMem, cpuSeconds: e.CPUSeconds, gpu: e.GPU, silent: e.Silent,
	}
	if e.StartedMS, e.EndedMS, e.FreeMS, e.PeakMem, e.CPUSeconds, e.GPU, e.Silent = 0, 0, 0, 0, 0, nil, false; e != (node.Exit{}) {
		s.exit = r.Exit
	}
	phase := r.Phase
	r.Stopping, r.Knew, r.Begun, r.PullMS, r.Exit, r.Phase = false, 0, 0, 0, nil, ""
	r.Alloc, r.Cluster, r.Model, r.Instance, r.Cores, r.Image = sched.Allocation{}, 0, "", "", "", ""
	at.Attempt, at.Start, at.End, at.Given, at.Launches, at.Alone, at.Ranks = 0, 0, 0, 0, nil, false, nil
	at.Partition, at.Image, at.Used = "", "", accounting.Amount{}
	if phase != node.PhaseEnded || !reflect.ValueOf(&r).Elem().IsZero() || !reflect.ValueOf(&at).Elem().IsZero() {
		return
	}
	s.place = in.place(j.Attempt, &j.Attempt.Ranks[0])
	j.Attempt, j.settled = nil, s
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
		exit node.Exit
	}
	w := &whole{}
	if w.rank[0].Exit = s.exit; s.exit == nil {
		w.exit = node.Exit{StartedMS: s.startedMS, EndedMS: s.endedMS, FreeMS: s.freeMS, PeakMem: s.peakMem, CPUSeconds: s.cpuSeconds, GPU: s.gpu, Silent: s.silent}
		w.rank[0].Exit = &w.exit
	}
	r := &w.rank[0]
	r.Alloc, r.Model, r.Cluster, r.Instance, r.Cores, r.Image = s.alloc, s.where.model, s.where.cluster, s.where.instance, s.where.cores, s.rankImage
	r.Phase, r.Knew, r.Begun, r.PullMS, r.Stopping = node.PhaseEnded, s.knew, s.begun, s.pullMS, s.stopping
	w.Attempt = Attempt{
		Attempt: s.attempt, Ranks: w.rank[:], Start: s.start, End: s.end, Given: s.given, Launches: s.launches, Alone: s.alone,
		Image: s.where.image, Partition: s.where.partition, Used: j.Used,
	}
	return &w.Attempt
}

// Try is the number of the last attempt; 0: there was none.
func (j *Job) Try() uint32 {
	switch {
	case j.settled != nil:
		return j.settled.attempt
	case j.Attempt != nil:
		return j.Attempt.Attempt
	}
	return 0
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
