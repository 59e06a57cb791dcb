package state

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	"gbatch/accounting"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/sched"
)

// Job is the controller's picture of a job. One with Tasks is a parent: it is
// never given to the scheduler, and those of its tasks that may start are jobs
// of their own. Values are immutable once in the table. It is stored as it is,
// under KindJob and KindHistory: fields are only added, and a changed meaning
// needs a new store format.
type Job struct {
	Number  job.Number `json:"n"`
	UUID    UUID       `json:"id"`
	Parent  job.Number `json:"parent,omitempty"` // whose task it is; 0: nobody's
	Index   int        `json:"index,omitempty"`  // of the task
	Tasks   *Tasks     `json:"tasks,omitempty"`  // of a parent, nil for all others
	Name    string     `json:"name"`
	Owner   *Owner     `json:"owner"`   // shared by all jobs of the same owner
	Request *Request   `json:"request"` // shared by all jobs that ask the same

	State   job.State  `json:"state"`
	Reason  job.Reason `json:"reason,omitempty"` // why it ended
	Text    string     `json:"text,omitempty"`   // the same in a sentence
	Version uint64     `json:"v"`                // grows with each change; also the number of the last event

	Submitted sched.Time `json:"submitted"`
	Since     sched.Time `json:"since"`              // in this state
	Started   sched.Time `json:"started,omitempty"`  // first RUNNING of the last attempt; 0 never
	First     sched.Time `json:"first,omitempty"`    // first RUNNING of any attempt, of a parent's of any task; 0 never
	Ended     sched.Time `json:"ended,omitempty"`    // 0: it is not over
	UsedRun   sched.Time `json:"usedRun,omitempty"`  // run time of earlier attempts, counted against the limit
	Expected  sched.Time `json:"expected,omitempty"` // run time that was predicted when it was submitted; 0 unknown

	Tries     uint32   `json:"tries,omitempty"`     // attempts begun
	TakenBack uint32   `json:"takenBack,omitempty"` // of them, given to a node ahead and taken back before it began them
	Retried   *Retried `json:"retried,omitempty"`   // its failures, nil if it has none
	Attempt   *Attempt `json:"attempt,omitempty"`   // the last one, with its allocation, while the job is active; else see Last
	Ending    *Ending  `json:"ending,omitempty"`    // why the running attempt is being ended, nil if it is not
	Sealed    bool     `json:"sealed,omitempty"`    // registry credentials or secrets are stored for it
	Shown     bool     `json:"-"`                   // more is shown of it than its record says
	Warned    int8     `json:"warned,omitempty"`    // the most of Request.Warn that was told of, in percent
	Secrets   uint32   `json:"secrets,omitempty"`   // version of its secrets' values, from 1; 0: it has none
	Waits     *Waits   `json:"waits,omitempty"`     // other jobs, nil if it names none
	Restart   *Restart `json:"restart,omitempty"`   // what it continues, nil if nothing

	Next     job.Number `json:"next,omitempty"`     // of a halted job: who continues it
	Cron     *Cron      `json:"cron,omitempty"`     // of a template, nil for all others
	Template job.Number `json:"template,omitempty"` // who made it; 0: a user
	Doc      job.Number `json:"doc,omitempty"`      // whose document and credentials it has; 0: its own

	Used accounting.Amount `json:"used,omitzero"` // x milliseconds, by all attempts that are over

	DocBytes    int32 `json:"docBytes,omitempty"`    // of the document that is stored for it or for who it continues
	SealedBytes int32 `json:"sealedBytes,omitempty"` // of its registry credentials and secrets, as they are stored

	Ref sched.Ref `json:"-"` // while it is queued: which jobs it is like, to plans

	settled *settled // of one that is over, in the place of Attempt
}

// UUID is a job's for programs, written as 32 hexadecimal digits.
type UUID [16]byte

// MarshalText writes the digits.
func (u UUID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, u[:]), nil }

// UnmarshalText is the inverse.
func (u *UUID) UnmarshalText(text []byte) error {
	if n, err := hex.Decode(u[:], text[:min(len(text), 2*len(u))]); err != nil || n != len(u) || len(text) != 2*n {
		return fmt.Errorf("bad UUID %q", text)
	}
	return nil
}

// Derive makes a UUID (version 5) out of another, the same each time.
func (u UUID) Derive(name string) (id UUID) {
	sum := sha1.Sum(append(u[:], name...))
	copy(id[:], sum[:])
	id[6], id[8] = id[6]&0x0f|0x50, id[8]&0x3f|0x80
	return id
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
	Limit        sched.Time   `json:"limit"`              // run time, as LimitScope says
	LimitMin     sched.Time   `json:"limitMin,omitempty"` // it may be given less down to this, where it starts sooner by it; 0: not
	MinRun       sched.Time   `json:"minRun,omitempty"`   // guaranteed before it may be halted
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
	StopRanks    int          `json:"stopRanks,omitempty"`
	Reservations []string     `json:"reservations,omitempty"`
	HaltUnwarned bool         `json:"haltUnwarned,omitempty"` // no signal before it is killed to make room
	StopSignal   string       `json:"stopSignal,omitempty"`   // empty: TERM
	Told         bool         `json:"mails,omitempty"`        // its document names who is to be told of it, at first by mail alone
	Warn         []int        `json:"warn,omitempty"`         // percent of the limit whose use somebody is told of, ascending
	IdleMin      int          `json:"idleMin,omitempty"`      // percent: it fails when all its GPUs are used less
	IdleWindow   sched.Time   `json:"idleWindow,omitempty"`   // over so long; 0: never
	StopGrace    sched.Time   `json:"stopGrace,omitempty"`    // 0: the site's
	LimitScope   string       `json:"limitScope,omitempty"`   // see job.LimitTotal
	Retry        *job.Retry   `json:"retry,omitempty"`
	Comment      *string      `json:"comment,omitempty"` // in the place of its document's label of that name, for people; nil: that
}

// Document is the number under which the job's document and credentials are:
// tasks share those of their parent, and jobs that continue one share its.
func (j *Job) Document() job.Number { return cmp.Or(j.Doc, j.Number) }

// Identity is the job's UUID as it is written. Unlike the number it is never given
// to another job, whatever becomes of the records.
func (j *Job) Identity() string {
	w := j.identity()
	return string(w[:])
}

// identity is what Identity writes, without room of its own: it is compared for
// each rank that a node tells of.
func (j *Job) identity() (w [36]byte) {
	at, from := w[:0], 0
	for _, to := range [...]int{4, 6, 8, 10, 16} {
		if from > 0 {
			at = append(at, '-')
		}
		at, from = hex.AppendEncode(at, j.UUID[from:to]), to
	}
	return w
}

// Is says whether a node's word on a rank is on one of this job.
func (j *Job) Is(st node.RankStatus) bool {
	w := j.identity()
	return st.UUID == "" || st.UUID == string(w[:]) // as node.SameJob, without a copy
}

// RankID names rank i of the job's last attempt.
func (j *Job) RankID(i int) job.RankID {
	return job.RankID{Job: j.Number, Task: uint32(j.Index), Attempt: j.Try(), Rank: uint32(i)}
}

// Image is the digest that the next attempt of a waiting job runs, empty if that is
// still to be found out; of is the array that it is a task of, nil if it is none's.
func (j *Job) Image(of *Job) string {
	var own, array string
	switch {
	case j.Attempt != nil:
		own = j.Attempt.Image
	case j.Restart != nil:
		own = j.Restart.Image
	}
	if of != nil && of.Tasks != nil {
		array = of.Tasks.Image
	}
	if j.First > 0 { // it has run with its own
		return cmp.Or(own, array)
	}
	return cmp.Or(array, own)
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

// Holds says whether the job holds what its attempt says: it is active, and not behind
// another one that still does.
func (j *Job) Holds() bool { return j.State.Active() && j.Attempt.Behind == 0 }

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

// LimitEnd is when the run time of a job is over that counts over the whole job, or over all tasks of
// the array that it is a task of; 0 if it is not counted so or has not begun.
func (j *Job) LimitEnd(of *Job) sched.Time {
	first := j.First
	if j.Parent > 0 && of != nil {
		first = of.First
	}
	if j.Request.LimitScope != job.LimitJob || first == 0 {
		return 0
	}
	return first + j.Request.Limit
}

// LimitNow is the job's time limit: as it was granted, where it runs with less than it
// asked for.
func (j *Job) LimitNow() sched.Time {
	if j.State.Active() && j.Request.LimitMin > 0 && j.Attempt.Limit > 0 {
		return min(j.Attempt.Limit, j.Request.Limit)
	}
	return j.Request.Limit
}

// WithLimit is the job with another time limit, while it runs also.
func (j *Job) WithLimit(limit sched.Time) *Job {
	out, req := *j, *j.Request
	req.Limit, req.MinRun, req.LimitMin = limit, min(req.MinRun, limit), min(req.LimitMin, limit)
	if out.Request = &req; j.State.Active() && j.Attempt.Limit > 0 {
		at := *j.Attempt
		out.Attempt, at.Limit = &at, 0
	}
	return &out
}

// Completing says that the job was ordered to end, or ends by its node's doing, and
// holds something still; of an array, that its tasks do.
func (j *Job) Completing() bool {
	switch {
	case j.State.Final():
		return false
	case j.Ending != nil:
		return true
	case !j.State.Active():
		return false
	}
	return slices.ContainsFunc(j.Attempt.Ranks, func(r Rank) bool { return r.Stopping })
}

// Words is the job's state for people.
func (j *Job) Words() string {
	if j.Ending != nil {
		return "being ended"
	}
	return string(j.State)
}

// ID is the job's name for people: its number, and of a task that of its parent
// with the index, as 123_7.
func (j *Job) ID() string {
	if j.Parent == 0 {
		return strconv.FormatUint(uint64(j.Number), 10)
	}
	return strconv.FormatUint(uint64(j.Parent), 10) + "_" + strconv.Itoa(j.Index)
}

// Status is the state to show: that of a parent whose tasks have begun is
// RUNNING, though only they hold anything.
func (j *Job) Status() job.State {
	if j.Tasks != nil && j.State == job.Queued && j.First > 0 {
		return job.Running
	}
	return j.State
}

// Waiting is how many waiting tasks a job stands for, on hold or not. Those of an
// array that are jobs of their own stand for themselves.
func (j *Job) Waiting() int {
	switch {
	case !j.State.Pending():
		return 0
	case j.Tasks != nil:
		return j.Tasks.Counts[TaskPending]
	}
	return 1
}

// Restart says what a job continues.
type Restart struct {
	Of      job.Number `json:"of"`              // the job before it
	Initial [16]byte   `json:"initial"`         // UUID of the first one
	Count   int        `json:"count"`           // jobs before it
	Tries   uint32     `json:"tries"`           // attempts that they have begun
	Image   string     `json:"image,omitempty"` // digest that they ran
}

// Retried is what a job's failures leave for the next decision.
type Retried struct {
	Failures int        `json:"failures,omitempty"` // that count against Retry.Limit
	Prologs  []string   `json:"prologs,omitempty"`  // nodes whose prolog failed before it since its program ran, the first of them
	Row      int        `json:"row,omitempty"`      // failures one soon after the other, of any kind
	Since    sched.Time `json:"since,omitempty"`    // the first of the row
	Until    sched.Time `json:"until,omitempty"`    // no try before
}
