package state

import (
	"hash/maphash"

	"gbatch/internal/job"
)

// Ahead has jobs of records that nobody has asked for yet, so that who takes them up need not
// read them: a controller that follows another one keeps it, to lead sooner. What it has of
// a job counts for the very bytes that it was read from, so that it may have too few or old ones.
type Ahead struct {
	Interner *Interner // what jobs share

	seed maphash.Seed
	jobs map[job.Number]aheadJob
}

type aheadJob struct {
	sum uint64 // of the record's value
	job *Job
}

// NewAhead has none.
func NewAhead() *Ahead {
	return &Ahead{Interner: &Interner{}, seed: maphash.MakeSeed(), jobs: map[job.Number]aheadJob{}}
}

// Len is of how many jobs it has one.
func (a *Ahead) Len() int { return len(a.jobs) }

// Put reads a record of KindJob; one without a value says that there is none any more. What
// cannot be read is left to who takes it up.
func (a *Ahead) Put(n job.Number, value []byte) {
	if value == nil {
		delete(a.jobs, n)
		return
	}
	sum := maphash.Bytes(a.seed, value)
	if old, ok := a.jobs[n]; ok && old.sum == sum {
		return
	}
	if j, err := a.Interner.job(value); err == nil {
		a.jobs[n] = aheadJob{sum, j}
	} else {
		delete(a.jobs, n)
	}
}

// Take is the job of a record: what was read ahead, or read now. The job belongs to the caller.
func (a *Ahead) Take(n job.Number, value []byte) (*Job, error) {
	kept, ok := a.jobs[n]
	if ok && kept.sum == maphash.Bytes(a.seed, value) {
		delete(a.jobs, n)
		return kept.job, nil
	}
	return a.Interner.job(value)
}
