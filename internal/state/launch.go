package state

import (
	"gbatch/internal/job"
	"gbatch/sched"
)

// Launches are the steps of an attempt: what srun has started in it. Each has a record
// of its own, KindLaunch; those that run are also here.
type Launches struct {
	Next    uint32   `json:"next"`           // number of the next one
	Kept    uint32   `json:"kept,omitempty"` // the lowest number whose record is kept
	Running []Launch `json:"open,omitempty"` // by number
}

// StepSeq is the Seq of a step's record: the steps of an attempt come behind those of earlier ones.
func (a *Attempt) StepSeq(n uint32) uint64 { return uint64(a.Attempt)<<32 | uint64(n) }

// Launch is one step: tasks of one program on ranks of the job.
type Launch struct {
	Number  uint32     `json:"n"`
	Attempt uint32     `json:"attempt"`
	Key     string     `json:"key"` // by which it is begun once
	Name    string     `json:"name"`
	Image   string     `json:"image,omitempty"` // of its container, where that is not the job's; without a login
	Tasks   int        `json:"tasks"`
	CPUs    int        `json:"cpus"`
	GPUs    int        `json:"gpus,omitempty"`
	Ranks   []int      `json:"ranks"`
	Begun   sched.Time `json:"begun"`
	Ended   sched.Time `json:"ended,omitempty"` // 0: it runs
	Code    int        `json:"code,omitempty"`
	Signal  int        `json:"signal,omitempty"`
	OOM     bool       `json:"oom,omitempty"`    // the memory limit ended something of it
	Cancel  string     `json:"cancel,omitempty"` // who has asked for its end

	Use *job.StepUse `json:"use,omitempty"`
}
