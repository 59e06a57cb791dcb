package control

import (
	"cmp"
	"fmt"

	"gbatch/accounting"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/sched"
)

// Job is the controller's picture of a job. One with Tasks is a parent: it is
// never given to the scheduler, and those of its tasks that may start are jobs
// of their own (see on_tasks.go). Values are immutable once in the table.
type Job struct {
	Number  job.Number
	UUID    [16]byte
	Parent  job.Number // whose task it is; 0: nobody's
	Index   int        // of the task
	Tasks   *Tasks     // of a parent, nil for all others
	Name    string
	Owner   *Owner   // shared by all jobs of the same owner
	Request *Request // shared by all jobs that ask the same

	State   job.State
	Reason  job.Reason // why it ended
	Text    string     // the same in a sentence
	Version uint64     // grows with each change; also the number of the last event

	Submitted sched.Time
	Since     sched.Time // in this state
	Started   sched.Time // first RUNNING of the last attempt; 0 never
	First     sched.Time // first RUNNING of any attempt, of a parent's of any task; 0 never
	Ended     sched.Time
	UsedRun   sched.Time // run time of earlier attempts, counted against the limit
	Expected  sched.Time // run time that was predicted when it was submitted; 0 unknown

	Tries   uint32   // attempts begun
	Retried *Retried // its failures, nil if it has none
	Attempt *Attempt // the last one; with its allocation while the job is active
	Ending  *Ending  // why the running attempt is being ended, nil if it is not
	Waits   *Waits   // other jobs, nil if it names none
	Sealed  bool     // registry credentials or secrets are stored for it
	Secrets uint32   // version of its secrets' values, from 1; 0: it has none
	Restart *Restart // what it continues, nil if nothing

	Cron *Cron // of a template, nil for all others

	Template job.Number // who made it; 0: a user
	Next     job.Number // of a halted job: who continues it
	Doc      job.Number // whose document and credentials it has; 0: its own

	Used accounting.Amount // x milliseconds, by all attempts that are over

	ref sched.Ref // while it is queued: its name to plans
}

// Owner is who a job belongs to.
type Owner struct {
	User    string `json:"user"`
	Project string `json:"project"`
	QOS     string `json:"qos,omitempty"`
}

// Request is what a job asks of the scheduler, out of its document.
type Request struct {
	Shape        *sched.Shape `json:"shape"`
	Limit        sched.Time   `json:"limit"`            // run time, as LimitScope says
	MinRun       sched.Time   `json:"minRun,omitempty"` // guaranteed before it may be halted
	Priority     int          `json:"priority,omitempty"`
	NotBefore    sched.Time   `json:"notBefore,omitempty"`
	NotAfter     sched.Time   `json:"notAfter,omitempty"`
	MaxQueued    sched.Time   `json:"maxQueued,omitempty"`
	Interactive  bool         `json:"interactive,omitempty"`
	Restartable  bool         `json:"restartable,omitempty"`
	Bucket       string       `json:"bucket,omitempty"`
	BucketMax    int          `json:"bucketMax,omitempty"`
	HaltSignal   string       `json:"haltSignal,omitempty"` // empty: TERM
	HaltGrace    sched.Time   `json:"haltGrace,omitempty"`  // 0: the site's
	StartOrder   string       `json:"startOrder,omitempty"` // of a gang, as job.Gbatch has it
	StopWhen     string       `json:"stopWhen,omitempty"`
	Reservations []string     `json:"reservations,omitempty"`
	HaltUnwarned bool         `json:"haltUnwarned,omitempty"` // no signal before it is killed to make room
	StopSignal   string       `json:"stopSignal,omitempty"`   // empty: TERM
	Mails        bool         `json:"mails,omitempty"`        // its document names mail addresses
	IdleMin      int          `json:"idleMin,omitempty"`      // percent: it fails when all its GPUs are used less
	IdleWindow   sched.Time   `json:"idleWindow,omitempty"`   // over so long; 0: never
	StopGrace    sched.Time   `json:"stopGrace,omitempty"`    // 0: the site's
	LimitScope   string       `json:"limitScope,omitempty"`   // see job.LimitTotal
	Retry        *job.Retry   `json:"retry,omitempty"`
}

// Attempt is one try at running a job. Immutable like the Job that holds it.
type Attempt struct {
	Attempt uint32     `json:"attempt"`
	Ranks   []Rank     `json:"ranks"`
	Start   sched.Time `json:"start"`           // resources held since
	Image   string     `json:"image,omitempty"` // digest that all ranks run, of this attempt and later ones, once known
	End     sched.Time `json:"end,omitempty"`
	Limit   sched.Time `json:"limit,omitempty"`  // how long it may run, where that is not the job's own
	Paused  string     `json:"paused,omitempty"` // by whom; its processes stand still and keep what they hold
	Sent    []Sent     `json:"sent,omitempty"`   // signals that its nodes are still to deliver
	SentSeq uint32     `json:"sentSeq,omitempty"`

	Used accounting.Amount `json:"used,omitzero"` // x milliseconds, by allocations that it has given back
}

// Rank is one container of an attempt.
type Rank struct {
	Alloc    sched.Allocation `json:"alloc"`
	Model    string           `json:"model,omitempty"`   // of its GPUs
	Cluster  int              `json:"cluster,omitempty"` // of its node, at its start
	Instance string           `json:"instance"`          // of the node's state directory when it was assigned
	Phase    node.Phase       `json:"phase"`
	Progress string           `json:"-"`              // not stored: the node says it again
	Done     *node.Done       `json:"done,omitempty"` // what the program says; stored with the next change
	Cores    string           `json:"cores,omitempty"`
	Image    string           `json:"image,omitempty"`
	PullMS   int64            `json:"pullMs,omitempty"` // its resources were held that long until the image was there

	Ports []job.PortMapping `json:"ports,omitempty"` // as the node says; mapped while it runs
	Exit  *node.Exit        `json:"exit,omitempty"`

	Resize    *Resizing  `json:"resize,omitempty"`
	Since     sched.Time `json:"since,omitempty"`     // it has held this allocation; 0: from the attempt's start
	Signalled uint32     `json:"signalled,omitempty"` // signals up to this one were delivered
	Stopping  bool       `json:"stopping,omitempty"`  // it was sent the signal to end
	Unsure    bool       `json:"unsure,omitempty"`    // a backup was restored: its node is to say whether it has it
}

// Ending is an order to end the running attempt.
type Ending struct {
	Signal string     `json:"signal"`
	Grace  sched.Time `json:"grace"`
	Reason job.Reason `json:"reason"`
	Text   string     `json:"text,omitempty"`
	Then   job.State  `json:"then"`            // CANCELLED, HALTED, FAILED, QUEUED, and FINISHED of a parent, or of a gang whose rank 0 is done
	Fault  bool       `json:"fault,omitempty"` // a rank failed: whether the job is tried again is decided when all have ended
}

// Document is the number under which the job's document and credentials are:
// tasks share those of their parent, and jobs that continue one share its.
func (j *Job) Document() job.Number { return cmp.Or(j.Doc, j.Number) }

// RankID names rank i of the job's last attempt.
func (j *Job) RankID(i int) job.RankID {
	return job.RankID{Job: j.Number, Task: uint32(j.Index), Attempt: j.Attempt.Attempt, Rank: uint32(i)}
}

// AwaitsImage says whether rank i is not to be ordered yet: the first rank finds
// out which image the reference names, and the others of the gang run that one.
func (j *Job) AwaitsImage(i int) bool {
	first := j.Attempt.Ranks[0].Phase
	return i > 0 && j.Attempt.Image == "" && j.Ending == nil && !first.After(node.PhasePulling)
}

// On says whether the job has a live rank on the node.
func (j *Job) On(name string) bool {
	if !j.State.Active() {
		return false
	}
	for _, r := range j.Attempt.Ranks {
		if r.Alloc.Node == name && r.Phase != node.PhaseEnded {
			return true
		}
	}
	return false
}

// LimitLeft is how long the running attempt may run, counted from its start.
func (j *Job) LimitLeft() sched.Time {
	switch {
	case j.Attempt != nil && j.Attempt.Limit > 0:
		return j.Attempt.Limit
	case j.Request.LimitScope == job.LimitAttempt:
		return j.Request.Limit
	}
	return max(j.Request.Limit-j.UsedRun, 1)
}

// ID is the job's name for people: its number, and of a task that of its parent
// with the index, as 123_7.
func (j *Job) ID() string {
	if j.Parent == 0 {
		return fmt.Sprint(j.Number)
	}
	return fmt.Sprintf("%d_%d", j.Parent, j.Index)
}

// Status is the state to show: that of a parent whose tasks have begun is
// RUNNING, though only they hold anything.
func (j *Job) Status() job.State {
	if j.Tasks != nil && j.State == job.Queued && j.First > 0 {
		return job.Running
	}
	return j.State
}

// schedID is the job's name to the scheduler, which puts it into its sentences:
// the number.
func schedID(n job.Number) sched.JobID { return sched.JobID(n) }

// NumberOf is the number of a job that the scheduler names.
func NumberOf(id sched.JobID) job.Number { return job.Number(id) }
