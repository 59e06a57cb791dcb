package api

import (
	"time"

	"gbatch/internal/job"
)

// PathNodeLaunch is where a node says what srun starts in a job whose first rank it has,
// and asks for the login by which it pulls the image of a step.
const PathNodeLaunch = "/v1/nodes/{name}/steps" // POST, that node only

// LaunchRequest is the body of PathNodeLaunch: one of Begin, End and Login. It is safe to
// repeat.
type LaunchRequest struct {
	Rank  job.RankID   `json:"rank"`
	UUID  string       `json:"uuid"` // of its job
	Begin *LaunchBegin `json:"begin,omitempty"`
	End   *LaunchEnd   `json:"end,omitempty"`
	Login bool         `json:"login,omitempty"` // wanted is the job's, by any node that runs a rank of it
}

// LaunchBegin asks for a step to be recorded, once for each Key, and numbered.
type LaunchBegin struct {
	Key   string `json:"key"`
	Name  string `json:"name"`
	Image string `json:"image,omitempty"`
	Tasks int    `json:"tasks"`
	CPUs  int    `json:"cpus"`
	GPUs  int    `json:"gpus,omitempty"`
	Ranks []int  `json:"ranks"`
}

// LaunchEnd is how a step ended.
type LaunchEnd struct {
	Step   uint32 `json:"step"`
	Code   int    `json:"code"`
	Signal int    `json:"signal,omitempty"`
	OOM    bool   `json:"oom,omitempty"` // the memory limit ended something of it

	Use *job.StepUse `json:"use,omitempty"`
}

// LaunchResponse has the number of the step that was begun, or the login that was asked for.
type LaunchResponse struct {
	Step     uint32      `json:"step"`
	Registry *Credential `json:"registry,omitempty"` // absent: the job has none
}

// Step is what srun started in a job, for people: JOB.NUMBER.
type Step struct {
	Number  uint32    `json:"number"`
	Attempt uint32    `json:"attempt,omitempty"` // of the job
	Name    string    `json:"name"`
	Image   string    `json:"image,omitempty"` // of its container; absent: it runs in the job's, or in one that was made before
	Tasks   int       `json:"tasks"`
	CPUs    int       `json:"cpus"`
	GPUs    int       `json:"gpus,omitempty"`
	Nodes   []string  `json:"nodes"` // none: of an earlier attempt than the job's last
	Begun   time.Time `json:"begun"`
	Ended   time.Time `json:"ended,omitzero"` // absent: it runs
	Code    int       `json:"code"`
	Signal  int       `json:"signal,omitempty"`
	OOM     bool      `json:"oom,omitempty"`    // the memory limit ended something of it
	Cancel  string    `json:"cancel,omitempty"` // who has asked for its end

	Use *job.StepUse `json:"use,omitempty"` // of one that has ended
}
