package state

import (
	"gbatch/accounting"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/sched"
)

// Decisive is the rank whose end speaks for the attempt: the first that ended
// badly, by time then rank, or rank 0 when all ended well.
func (a *Attempt) Decisive() Rank {
	bad := -1
	for i, r := range a.Ranks {
		if r.Exit != nil && r.Exit.OK() {
			continue
		}
		if bad < 0 || (r.Exit != nil && a.Ranks[bad].Exit != nil && r.Exit.EndedMS < a.Ranks[bad].Exit.EndedMS) {
			bad = i
		}
	}
	return a.Ranks[max(bad, 0)]
}

// Attempt is one try at running a job. Immutable like the Job that holds it.
type Attempt struct {
	Attempt   uint32     `json:"attempt"`
	Ranks     []Rank     `json:"ranks"`
	Start     sched.Time `json:"start"`           // resources held since
	Image     string     `json:"image,omitempty"` // digest that all ranks run, of this attempt and later ones, once known
	End       sched.Time `json:"end,omitempty"`
	Partition string     `json:"partition,omitempty"` // of those that the job names, the one that it runs in
	Limit     sched.Time `json:"limit,omitempty"`     // how long it may run, where that is not the job's own
	Paused    string     `json:"paused,omitempty"`    // by whom; its processes stand still and keep what they hold
	Sent      []Sent     `json:"sent,omitempty"`      // signals that its nodes are still to deliver
	SentSeq   uint32     `json:"sentSeq,omitempty"`

	// Alone: where a node of it loses contact it runs on there, and is not given up
	// before somebody says what became of it.
	Alone bool `json:"alone,omitempty"`

	// Behind is the job whose place it is to have when that one has ended, and the node
	// begins it then without asking: it was given ahead, and holds nothing yet. 0: it holds
	// what its ranks say. Given is when its node was given it ahead; 0: it was not.
	Behind job.Number `json:"behind,omitempty"`
	Given  sched.Time `json:"given,omitempty"`

	Launches *Launches `json:"launches,omitempty"` // what srun started in it; nil: nothing

	Used accounting.Amount `json:"used,omitzero"` // x milliseconds, by allocations that it has given back
}

// Rank is one container of an attempt.
type Rank struct {
	Alloc    sched.Allocation `json:"alloc"`
	Model    string           `json:"model,omitempty"`   // of its GPUs
	Cluster  int              `json:"cluster,omitempty"` // of its node, at its start
	Instance string           `json:"instance"`          // of the node's state directory when it was assigned
	Knew     sched.Time       `json:"knew,omitempty"`    // Node.Knows of its node when it was assigned, or later and before it began
	Phase    node.Phase       `json:"phase"`
	Progress string           `json:"-"`              // not stored: the node says it again
	Done     *node.Done       `json:"done,omitempty"` // what the program says; stored with the next change
	Cores    string           `json:"cores,omitempty"`
	Image    string           `json:"image,omitempty"`
	PullMS   int64            `json:"pullMs,omitempty"` // its resources were held that long until the image was there

	Begun sched.Time `json:"begun,omitempty"` // as its node says, where that was told late

	Ports []job.PortMapping `json:"ports,omitempty"` // as the node says; mapped while it runs
	Exit  *node.Exit        `json:"exit,omitempty"`

	Resize    *Resizing  `json:"resize,omitempty"`
	Since     sched.Time `json:"since,omitempty"`     // it has held this allocation; 0: from the attempt's start
	Signalled uint32     `json:"signalled,omitempty"` // signals up to this one were delivered
	Stopping  bool       `json:"stopping,omitempty"`  // it was sent the signal to end
	Unsent    bool       `json:"unsent,omitempty"`    // its node was lost and never told of it: it did not run
	Unsure    bool       `json:"unsure,omitempty"`    // a backup was restored: its node is to say whether it has it
}

// Ending is an order to end the running attempt.
type Ending struct {
	Signal string     `json:"signal"`
	Grace  sched.Time `json:"grace"`
	Reason job.Reason `json:"reason"`
	Text   string     `json:"text,omitempty"`
	Since  sched.Time `json:"since,omitempty"` // when it was given; 0: by a version that did not note it
	Then   job.State  `json:"then"`            // CANCELLED, HALTED, FAILED, QUEUED, and FINISHED of a parent, or of a gang whose rank 0 is done
	Ahead  bool       `json:"ahead,omitempty"` // only if it has not begun: it was given ahead, and is taken back
	Fault  bool       `json:"fault,omitempty"` // a rank failed: whether the job is tried again is decided when all have ended
}

// Sent is a signal for the processes of an attempt. Each rank's node delivers it
// at most once: it notes the number before it sends, and a note that was written
// is never sent again.
type Sent struct {
	Seq  uint32 `json:"seq"` // from 1, in the attempt
	Name string `json:"name"`
	By   string `json:"by"`
}

// Resizing is what a rank's node was asked to give it.
type Resizing struct {
	Seq    uint64           `json:"seq"` // the node's answer names it
	To     sched.Allocation `json:"to"`
	From   sched.Allocation `json:"from"`             // what it has again if the node refuses
	Failed string           `json:"failed,omitempty"` // why the node refused; nothing is asked any more
}

// Asked is what the rank's node shall do, nil for nothing.
func (r *Rank) Asked() *Resizing {
	if r.Resize == nil || r.Resize.Failed != "" {
		return nil
	}
	return r.Resize
}

// MayBegin says whether the program of rank i may begin: a gang's when all
// ranks are ready, and then in the order that the job wants.
func (j *Job) MayBegin(i int) bool {
	ranks := j.Attempt.Ranks
	if len(ranks) == 1 {
		return true
	}
	if j.Ending != nil {
		return false // a rank may have ended without being ready
	}
	first, others := false, true // run or have run
	for k, r := range ranks {
		if !r.Phase.After(node.PhaseStarting) {
			return false
		}
		runs := r.Phase.After(node.PhaseReady)
		if k == 0 {
			first = runs
		} else {
			others = others && runs
		}
	}
	switch j.Request.StartOrder {
	case job.MasterFirst:
		return i == 0 || first
	case job.WorkersFirst:
		return i > 0 || others
	}
	return true
}

// Begun is how many ranks may begin.
func (j *Job) Begun() int {
	n := 0
	for i := range j.Attempt.Ranks {
		if j.MayBegin(i) {
			n++
		}
	}
	return n
}
