package state

import (
	"fmt"
	"time"

	"gbatch/internal/job"
	"gbatch/sched"
)

// Cron is a template's time table and where it stands.
type Cron struct {
	Lines []string   `json:"lines"`
	Next  sched.Time `json:"next"`
	Last  job.Number `json:"last,omitempty"` // the job that it made last, or who continues that one
	Made  int        `json:"made,omitempty"`
	Tasks *job.Tasks `json:"tasks,omitempty"` // of the jobs that it makes
	Zone  string     `json:"zone,omitempty"`  // whose clock Lines go by; empty: UTC

	// Replace: at a time at which the job made last is not over that one is cancelled,
	// and the next waits for its end. Overlap: it makes a job all the same. Without either
	// such a time is skipped.
	Replace bool `json:"replace,omitempty"`
	Overlap bool `json:"overlap,omitempty"`
}

// text says what a template waits for.
func (t *Cron) text() string {
	return fmt.Sprintf("is a template: makes the next job at %s; %d made", time.UnixMilli(int64(t.Next)).UTC().Format("2006-01-02 15:04 UTC"), t.Made)
}

// Reason is why a template does not run.
func (t *Cron) Reason() sched.Reason {
	return sched.Reason{Code: sched.CodeBeginTime, Text: t.text(), At: t.Next}
}
