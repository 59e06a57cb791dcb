package api

import "time"

// WhatIfRequest is the body of POST /v1/what-if: what to change. Nothing: when the jobs
// that wait would start as things are.
type WhatIfRequest struct {
	Set      []string `json:"set,omitempty" maxItems:"20"`      // rules, as "halfLife=14d" or "weights.small=500"
	AddNodes []string `json:"addNodes,omitempty" maxItems:"10"` // COUNTxGPUSxMODEL, as "2x8xh100"
	File     bool     `json:"file,omitempty"`                   // the rules as the configuration file has them now
}

// WhatIf is its answer: who would wait for how long, from Now on, as things are and
// changed. Jobs are expected to run for as long as their user's last ones of the kind
// did, else until their limit.
type WhatIf struct {
	Now   time.Time `json:"now"`
	Until time.Time `json:"until"` // how far was looked; what starts later has no start here, and waits until then
	Whole bool      `json:"whole"` // all that can start in 30 days was found; else the time to look was over

	All   WhatIfWaits   `json:"all"`
	Users []WhatIfWaits `json:"users"` // whose jobs wait, most jobs first, at most 100
	Jobs  []WhatIfJob   `json:"jobs"`  // for which it makes most of a difference, at most 100
}

// WhatIfWaits is how long jobs wait from now on.
type WhatIfWaits struct {
	User string `json:"user,omitempty"`
	Jobs int    `json:"jobs"` // that wait now, tasks one by one

	StartedBefore int   `json:"startedBefore"` // of these, so many start
	StartedAfter  int   `json:"startedAfter"`
	WaitBeforeS   int64 `json:"waitBeforeS"` // on average, of those that start one way or the other
	WaitAfterS    int64 `json:"waitAfterS"`

	Sooner int `json:"sooner"` // jobs that start at least a minute sooner
	Later  int `json:"later"`
}

// WhatIfJob is a job that waits now.
type WhatIfJob struct {
	ID      string     `json:"id"`
	Name    string     `json:"name"`
	User    string     `json:"user"`
	Project string     `json:"project"`
	Before  *time.Time `json:"before,omitempty"`
	After   *time.Time `json:"after,omitempty"`
}
