package api

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"gbatch/internal/job"
	"gbatch/internal/node"
)

// SubmitRequest is the body of POST /v1/jobs.
type SubmitRequest struct {
	Job     json.RawMessage `json:"job" doc:"the job document, GPULab v2"`
	Project string          `json:"project,omitempty" doc:"overrides the document's owner; empty: the document's, else the site's default"`
	Hold    bool            `json:"hold,omitempty"`

	Dependency string `json:"dependency,omitempty" doc:"as afterok:12,after:13+5, in place of the document's"`
	DryRun     bool   `json:"dryRun,omitempty" doc:"check everything and answer, but queue nothing"`

	Interactive bool `json:"interactive,omitempty" doc:"sets the document's scheduling.interactive and gbatch.terminal: it starts at once or fails, and can be attached to"`
}

// SubmitResponse is its answer. Number and UUID are zero for a dry run.
type SubmitResponse struct {
	Number    job.Number `json:"number,omitempty"`
	UUID      string     `json:"uuid,omitempty"`
	State     job.State  `json:"state,omitempty"`
	Project   string     `json:"project"`
	Notes     []Note     `json:"notes,omitempty"`
	Effective *job.Spec  `json:"effective,omitempty"` // dry run only
	Estimate  *Estimate  `json:"estimate,omitempty"`  // dry run only
	Repeated  bool       `json:"repeated,omitempty"`  // the idempotency key had been used: this is that job
}

// MaxSubmissions is how many jobs one request may submit.
const MaxSubmissions = 250

// SubmitManyRequest is the body of POST /v1/submissions.
type SubmitManyRequest struct {
	Jobs []KeyedSubmission `json:"jobs" doc:"at most 250. Each is taken or refused for itself, and those that are taken have numbers in this order"`
}

// KeyedSubmission is one of many submissions.
type KeyedSubmission struct {
	SubmitRequest
	Key string `json:"key,omitempty" doc:"the job's Idempotency-Key"`
}

// SubmitManyResponse is its answer: a result for each job, in their order.
type SubmitManyResponse struct {
	Results []SubmitResult `json:"results"`
}

// SubmitResult is what became of one job: it is durable, or Error says why it is
// not there, as the answer to POST /v1/jobs would.
type SubmitResult struct {
	Submitted *SubmitResponse `json:"submitted,omitempty"`
	Error     *Error          `json:"error,omitempty"`
}

// Estimate is when and where a job would start by the current plan.
type Estimate struct {
	Now   bool      `json:"now"` // it would start at once
	At    time.Time `json:"at,omitzero"`
	Nodes []string  `json:"nodes,omitempty"`
	Text  string    `json:"text"`
}

// Job is a job as lists show it. For viewers from other projects Name is
// "job-<first 6 of UUID>" and Private is true.
type Job struct {
	ID         string     `json:"id"` // what people type: the number, and of a task that of its array with the index, as 123_7
	Number     job.Number `json:"number,omitempty"`
	Parent     job.Number `json:"parent,omitempty"` // of a task: its array
	Task       *int       `json:"task,omitempty"`   // of a task: its index
	Tasks      *TaskSets  `json:"tasks,omitempty"`  // of an array
	UUID       string     `json:"uuid"`
	Name       string     `json:"name"`
	User       string     `json:"user"`
	Project    string     `json:"project"`
	State      job.State  `json:"state"`
	Reason     string     `json:"reason,omitempty"`     // why it waits (as Resources), or why it ended (as OOM)
	ReasonText string     `json:"reasonText,omitempty"` // the same with numbers, in a sentence
	Submitted  time.Time  `json:"submitted"`
	Started    time.Time  `json:"started,omitzero"` // RUNNING since
	Ended      time.Time  `json:"ended,omitzero"`
	LimitS     int64      `json:"limitS,omitempty"`    // time limit, seconds; as it was granted, where the job asked for more
	LimitMinS  int64      `json:"limitMinS,omitempty"` // least time limit that will do, where it starts sooner by that
	Licenses   string     `json:"licenses,omitempty"`  // that it has or asks for, as matlab:2,ansys:1
	GPUs       float64    `json:"gpus,omitempty"`      // of all ranks
	CPUs       int        `json:"cpus,omitempty"`
	MemBytes   int64      `json:"memBytes,omitempty"`
	Cluster    int        `json:"cluster,omitempty"`   // asked for, or where it is
	Partition  string     `json:"partition,omitempty"` // that it named, with commas between, or where it is
	NumNodes   int        `json:"numNodes,omitempty"`
	Nodes      []string   `json:"nodes,omitempty"` // where it is or was
	ExitCode   *int       `json:"exitCode,omitempty"`
	EstStart   time.Time  `json:"estStart,omitzero"` // as the plan has it
	Begin      time.Time  `json:"begin,omitzero"`    // of one that waits for it: it does not start before, and the plan does not have it yet
	Private    bool       `json:"private,omitempty"`
	Priority   int64      `json:"priority,omitempty"` // the user's or an operator's adjustment
	Factors    *Priority  `json:"factors,omitempty"`  // of a job that waits for room: its priority; in lists with factors=true
	QOS        string     `json:"qos,omitempty"`
	Comment    *string    `json:"comment,omitempty"` // that it was given later, in the place of its document's label of that name

	Ending *Ending `json:"ending,omitempty"` // of a job that is being ended, whatever its state: lists show it as COMPLETING

	Restart   *RestartInfo `json:"restartInfo,omitempty"` // of a job that continues a halted one
	Successor job.Number   `json:"successor,omitempty"`   // of a halted job: who continues it
	Template  job.Number   `json:"template,omitempty"`    // whose time table made it

	Dependency string `json:"dependency,omitempty"` // what it waits for still, as "afterok:12"

	// Steps are what srun started in it: of one job the last thousand, by number; in
	// lists where asked for, and there of jobs that have not ended those that run.
	Steps []Step `json:"steps,omitempty"`
}

// Ending is how a job is being ended that holds something still.
type Ending struct {
	Since time.Time `json:"since,omitzero"` // when that was ordered; absent where its node decided it, as at the time limit
	Kill  time.Time `json:"kill,omitzero"`  // when what is left of it then is killed
	Then  job.State `json:"then,omitempty"` // what it is then, if it does not end well before; absent: not known yet
}

// RestartInfo says what a job continues.
type RestartInfo struct {
	InitialJobUUID string     `json:"initialJobUuid"` // of the first
	RestartCount   int        `json:"restartCount"`   // how many were halted before
	Of             job.Number `json:"of"`             // the one before
}

// TaskSets is how far the tasks of an array are. Of a list, where an array stands
// for its tasks that wait, only Waiting and what was asked are set.
type TaskSets struct {
	Indexes     string `json:"indexes"`               // all, as 0-99
	Parallelism int    `json:"parallelism,omitempty"` // most that are active at once; 0: no bound
	Waiting     string `json:"waiting,omitempty"`
	Succeeded   string `json:"succeeded,omitempty"`
	Failed      string `json:"failed,omitempty"`
	Cancelled   string `json:"cancelled,omitempty"`

	NumWaiting   int `json:"numWaiting"`
	NumActive    int `json:"numActive"`
	NumSucceeded int `json:"numSucceeded"`
	NumFailed    int `json:"numFailed"`
	NumCancelled int `json:"numCancelled"`
	NumBelow     int `json:"numBelow,omitempty"` // in a list that folds arrays: tasks that would have lines of their own
}

// JobList is the answer of GET /v1/jobs. Filters (query): state, user,
// project, name, node, all=true (ended ones too), text, offset, limit.
type JobList struct {
	Jobs  []Job `json:"jobs"`
	Total int   `json:"total"` // matching jobs, of which Jobs may be a part

	NoUser bool `json:"noUser,omitempty"` // there are none, and the site knows no user of the name that was asked for
}

// JobDetail is the answer of GET /v1/jobs/{id}.
type JobDetail struct {
	Job
	Version   uint64     `json:"version"` // grows with each change; for long polls
	Spec      *job.Spec  `json:"spec,omitempty"`
	Class     job.Class  `json:"class,omitempty"`
	Progress  string     `json:"progress,omitempty"` // what the node is doing for it, as "pulling 12 of 80 MiB"
	Done      *node.Done `json:"done,omitempty"`     // what the program says of its progress
	Attempts  []Attempt  `json:"attempts,omitempty"`
	Used      *Used      `json:"used,omitempty"`
	Log       *LogState  `json:"log,omitempty"`      // of its last attempt, where the controller keeps a copy
	Events    []Event    `json:"events,omitempty"`   // the last 1000 lines of the timeline, oldest first
	Untold    []Untold   `json:"untold,omitempty"`   // messages about it that were tried and not taken; they are tried for a day
	Position  int        `json:"position,omitempty"` // in the queue by priority; 1 is next
	NumQueued int        `json:"numQueued,omitempty"`
}

// Untold is a message about a job that somebody has not taken yet.
type Untold struct {
	Event string    `json:"event"` // queue, run, end, halt, restart
	To    string    `json:"to"`    // of a web address only the host
	Since time.Time `json:"since"`
	Tries int       `json:"tries"` // of this address, one after the other, that failed
	Error string    `json:"error"` // of the last
}

// Attempt is one try at running a task.
type Attempt struct {
	Task    uint32    `json:"task"`
	Attempt uint32    `json:"attempt"`
	Ranks   []Rank    `json:"ranks"`
	Start   time.Time `json:"start"` // allocated since
	End     time.Time `json:"end,omitzero"`
}

// Rank is one container of an attempt.
type Rank struct {
	Allocation
	Phase string     `json:"phase"`
	Cores string     `json:"cores,omitempty"` // core ids as the kernel writes lists
	Image string     `json:"image,omitempty"` // digest that ran
	Exit  *node.Exit `json:"exit,omitempty"`

	Use *node.LiveUse `json:"use,omitempty"` // of one that runs, as its node said last

	Ports []job.PortMapping `json:"ports,omitempty"` // of the container, and the node's that lead to them

	Resize *RankResize `json:"resize,omitempty"`
}

// RankResize is what a rank was asked to have instead, until its node has done
// so, and after that if it refused.
type RankResize struct {
	CPUs     int    `json:"cpus"`
	MemBytes int64  `json:"memBytes"`
	Failed   string `json:"failed,omitempty"`
}

// ResourcesRequest is the body of PATCH /v1/jobs/{id}: what each rank of
// a running job shall have. 0 keeps what it has.
type ResourcesRequest struct {
	CPUs        int `json:"cpus,omitempty"`
	CPUMemoryGB int `json:"cpuMemoryGb,omitempty"` // GiB, without its tmpfs, as in the document
}

// ResourcesResponse says what was asked of the job's nodes; JobDetail has how
// they did it.
type ResourcesResponse struct {
	Number  job.Number `json:"number"`
	Message string     `json:"message"`
}

// Event is one line of a job's timeline.
type Event struct {
	Time    time.Time `json:"time"`
	State   job.State `json:"state,omitempty"` // entered, if it changed
	Message string    `json:"message"`
}

// SecretsRequest is the body of PATCH /v1/jobs/{id}/secrets: new values by
// name. What it does not name stays.
type SecretsRequest struct {
	Values map[string]string `json:"values"`
}

// SecretsResponse is its answer. No answer ever holds a value.
type SecretsResponse struct {
	Number  job.Number `json:"number"`
	Version uint32     `json:"version"` // of the job's secrets
	State   job.State  `json:"state"`
	Message string     `json:"message"` // what of it takes effect when
}

// ActionRequest names the jobs of POST /v1/actions/{action}: by id, or
// all that match the filters (at least one filter must be given).
type ActionRequest struct {
	IDs     []string `json:"ids,omitempty"` // numbers, UUIDs, or tasks as 123_7 and 123_[3-9]
	User    string   `json:"user,omitempty"`
	Project string   `json:"project,omitempty"`
	State   string   `json:"state,omitempty"`
	Name    string   `json:"name,omitempty"`
	Cluster int      `json:"cluster,omitempty"`

	Partition string `json:"partition,omitempty"` // that they run in, or may

	Count bool `json:"count,omitempty"` // only say how many it would touch

	Signal   string `json:"signal,omitempty"`   // of action signal: as USR1
	Priority int    `json:"priority,omitempty"` // of action update without change: what is added to the priority

	Change *JobChange `json:"change,omitempty"` // of action update
}

// JobChange is what a job shall have instead of what its document says. What is
// absent stays. Of a job that runs only name and time limit can be changed, and only
// operators may raise a priority, or a limit at others' cost. A project and a qos are had by the rules that
// hold when a job is submitted.
type JobChange struct {
	Name      string `json:"name,omitempty"`
	Project   string `json:"project,omitempty"`   // of a job that has not run
	QOS       string `json:"qos,omitempty"`       // of a waiting job
	LimitS    int64  `json:"limitS,omitempty"`    // run time, seconds
	Priority  *int   `json:"priority,omitempty"`  // what is added to it
	LimitMinS *int64 `json:"limitMinS,omitempty"` // of a waiting job: least time limit that will do, where it starts sooner by that; 0: none

	Comment *string `json:"comment,omitempty"` // for people; empty: none
}

// ActionResponse says what was done to each job, in the order asked.
type ActionResponse struct {
	Results []ActionResult `json:"results,omitempty"`
	Matched int            `json:"matched"`
}

// ActionResult is the outcome for one job. Error is empty when it was done or
// nothing needed doing.
type ActionResult struct {
	ID      string     `json:"id"` // as asked
	Number  job.Number `json:"number,omitempty"`
	Before  job.State  `json:"before,omitempty"`
	After   job.State  `json:"after,omitempty"`
	Message string     `json:"message,omitempty"` // as "already FINISHED"
	Error   *Error     `json:"error,omitempty"`
}

// Secrets are the values of a job's secrets on their way to the node that runs
// it. They are never logged, stored in clear, or returned to clients.
type Secrets struct {
	Version uint32            `json:"version"` // from 1; grows with each change
	Values  map[string]string `json:"values"`
}

// What is written for secrets by mistake is how many there are.

// String hides the values.
func (s Secrets) String() string { return fmt.Sprintf("%d secrets", len(s.Values)) }

// GoString hides the values.
func (s Secrets) GoString() string { return s.String() }

// LogValue hides the values.
func (s Secrets) LogValue() slog.Value { return slog.StringValue(s.String()) }

// String hides the password.
func (c Credential) String() string { return c.Username + ":****" }

// GoString hides the password.
func (c Credential) GoString() string { return c.String() }

// LogValue hides the password.
func (c Credential) LogValue() slog.Value { return slog.StringValue(c.String()) }
