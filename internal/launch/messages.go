package launch

import "gbatch/internal/job"

// Request is what a step asks of its job. Numbers of 0 were not given.
type Request struct {
	Name     string   `json:"name"`
	Image    string   `json:"image,omitempty"` // of its container, where it has one of its own; without a login
	Tasks    int      `json:"tasks,omitempty"`
	Nodes    int      `json:"nodes,omitempty"`    // at least so many ranks
	MaxNodes int      `json:"maxNodes,omitempty"` // at most
	PerNode  int      `json:"perNode,omitempty"`  // at most so many tasks on a rank
	CPUs     int      `json:"cpus,omitempty"`     // of each task
	On       []string `json:"on,omitempty"`       // on these nodes; with Nodes on others beside them
	Not      []string `json:"not,omitempty"`      // on none of these
	Relative int      `json:"relative,omitempty"` // from this rank on

	GPUs        *int `json:"gpus,omitempty"` // of the step; nil: not given
	GPUsPerNode *int `json:"gpusPerNode,omitempty"`
	GPUsPerTask *int `json:"gpusPerTask,omitempty"`
	TasksPerGPU int  `json:"tasksPerGpu,omitempty"`

	Distribution string `json:"distribution,omitempty"` // block, cyclic or plane=N
	CPUBind      string `json:"cpuBind,omitempty"`      // none or cores; empty: where tasks fill the rank
	GPUBind      string `json:"gpuBind,omitempty"`      // none, single:N, per_task:N or map_gpu:LIST
	Exact        bool   `json:"exact,omitempty"`        // tasks see only their own cores
	Overlap      bool   `json:"overlap,omitempty"`      // what other steps have may be used too
	Overcommit   bool   `json:"overcommit,omitempty"`   // tasks share cores
	Immediate    bool   `json:"immediate,omitempty"`    // now or not at all
}

// Layout is a step that was granted: which tasks run where.
type Layout struct {
	Step   uint32   `json:"step"`
	Tasks  int      `json:"tasks"`
	CPUs   int      `json:"cpus"` // of each task
	Placed []Placed `json:"placed"`
}

// Placed are the tasks of one rank.
type Placed struct {
	Rank  int    `json:"rank"`
	Tasks []Task `json:"tasks"`
}

// Task is one of a step. Cores and GPUs are counted from 0 among those of the
// rank; nil: all.
type Task struct {
	ID    int   `json:"id"`
	Local int   `json:"local"`
	CPUs  []int `json:"cpus,omitempty"`
	GPUs  []int `json:"gpus,omitempty"`
	NoGPU bool  `json:"noGpu,omitempty"`
}

// Done is how a step ended.
type Done struct {
	Code   int  `json:"code"`
	Signal int  `json:"signal,omitempty"`
	Cancel bool `json:"cancel,omitempty"` // because somebody cancelled it
	OOM    bool `json:"oom,omitempty"`    // the memory limit ended something of it

	Use *job.StepUse `json:"use,omitempty"` // nil: no task has ended
}

// Start orders the tasks of one rank. What is about all tasks stands here once.
type Start struct {
	Layout   Layout         `json:"layout"`
	Own      int            `json:"own"` // index of this rank in Layout.Placed
	Args     []string       `json:"args"`
	Programs map[int]string `json:"programs,omitempty"` // by task, as a line, in place of Args
	Env      []string       `json:"env"`
	OwnEnv   bool           `json:"ownEnv,omitempty"` // beside Env, tasks have the variables of the container where they run
	Dir      string         `json:"dir"`              // empty: as the image of In says
	Umask    int            `json:"umask"`
	Limits   []Limit        `json:"limits,omitempty"`

	Input  string `json:"input"` // of each task: see Stdio
	Output string `json:"output"`
	Errors string `json:"errors"`
	Append bool   `json:"append,omitempty"` // files are appended to

	Pinned   bool              `json:"pinned,omitempty"` // tasks are bound to their cores
	Terminal *Size             `json:"terminal,omitempty"`
	PMI      string            `json:"pmi,omitempty"`  // pmi2, or empty
	PMIx     bool              `json:"pmix,omitempty"` // in place of PMI
	Extra    map[string]string `json:"extra,omitempty"`

	In     *Container `json:"in,omitempty"`     // KindStartIn
	Beside *uint32    `json:"beside,omitempty"` // KindBeside: that step
	Over   []string   `json:"over,omitempty"`   // variables of Env that win over those of its image
}

// Attach asks for what the tasks of a step write from now on.
type Attach struct {
	Step uint32 `json:"step"`
}

// What Start.Input, Output and Errors say beside the name of a file with its
// patterns.
const (
	Stream = "\x00stream" // by srun
	Null   = "\x00null"
	Merged = "\x00merged" // of errors: where output goes
)

// AnyTask is the key in Start.Programs of tasks that none is named for.
const AnyTask = -1

// Limit is a resource limit of srun that its tasks get.
type Limit struct {
	Kind int    `json:"kind"`
	Soft uint64 `json:"soft"`
}

// Size is that of a terminal.
type Size struct {
	Width  uint16 `json:"width"`
	Height uint16 `json:"height"`
}

// Signal is one for all tasks of a rank; with Task for one.
type Signal struct {
	Number int  `json:"number"`
	Only   bool `json:"only,omitempty"` // the frame's task alone
}

// Exit is how a task ended: a code, or the signal that ended it. Error says why it
// never began.
type Exit struct {
	Code   int    `json:"code"`
	Signal int    `json:"signal,omitempty"`
	Core   bool   `json:"core,omitempty"` // it left a core
	OOM    bool   `json:"oom,omitempty"`  // the memory limit ended it, or something of its step before it
	Error  string `json:"error,omitempty"`

	Use job.TaskUse `json:"use,omitzero"`
}

// Status is the exit code as a shell tells it.
func (e Exit) Status() int {
	if e.Signal > 0 {
		return 128 + e.Signal
	}
	return e.Code
}
