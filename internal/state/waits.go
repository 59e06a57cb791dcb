package state

import (
	"fmt"
	"strings"

	"gbatch/internal/job"
	"gbatch/sched"
)

// Arrays are the arrays for whose tasks the tasks of this job wait one by one.
func (w *Waits) Arrays() []job.Number {
	if w == nil {
		return nil
	}
	return w.Tasks
}

// Waits is what a job waits for before the scheduler may look at it.
type Waits struct {
	Needs []Need     `json:"needs,omitempty"` // the conditions that have not come true
	Any   bool       `json:"any,omitempty"`   // one is enough
	Met   bool       `json:"met,omitempty"`   // enough of them have come true
	Since sched.Time `json:"since,omitempty"` // with Met: it may start from then on

	Tasks []job.Number `json:"tasks,omitempty"` // the arrays for whose tasks the tasks of this array wait one by one; none that is over
}

// Need is a condition on one job.
type Need struct {
	Type  string     `json:"type"`           // one of job.DependencyTypes
	Job   job.Number `json:"job"`            // of a singleton: one of those that are left
	Task  *int       `json:"task,omitempty"` // index of the task of Job that is meant, while that is no job yet
	Delay sched.Time `json:"delay,omitempty"`
}

// Unmet says that the job waits for others still.
func (w *Waits) Unmet() bool { return w != nil && !w.Met }

// Who is the name of the job that is awaited.
func (n Need) Who() string {
	if n.Task != nil {
		return fmt.Sprintf("task %d_%d", n.Job, *n.Task)
	}
	return fmt.Sprintf("job %d", n.Job)
}

// words is the condition in words.
func (n Need) words() string {
	switch n.Type {
	case job.After:
		if n.Delay > 0 {
			return fmt.Sprintf("%s to have begun %s ago", n.Who(), job.Duration(n.Delay/1000))
		}
		return n.Who() + " to begin"
	case job.AfterOK, job.AfterCorr:
		return n.Who() + " to finish well"
	case job.AfterNotOK:
		return n.Who() + " to fail"
	case job.Singleton:
		return n.Who() + ", an earlier one of the same name and user, to end"
	}
	return n.Who() + " to end"
}

// Missed says that a condition can no longer come true.
func (n Need) Missed(j *Job) string {
	return fmt.Sprintf("did not run: it waited for %s, and %s is %s", n.words(), n.Who(), j.State)
}

// Text says what a job waits for.
func (w *Waits) Text() string {
	const most = 5
	var words []string
	for _, n := range w.Needs[:min(len(w.Needs), most)] {
		words = append(words, n.words())
	}
	if more := len(w.Needs) - most; more > 0 {
		words = append(words, fmt.Sprintf("%d more jobs", more))
	}
	for _, n := range w.Tasks[:min(len(w.Tasks), most)] {
		words = append(words, fmt.Sprintf("tasks of job %d, each for the one of its index, to finish well", n))
	}
	if w.Any && len(w.Needs) > 1 {
		return "waits for one of: " + strings.Join(words, ", ")
	}
	return "waits for " + strings.Join(words, ", ")
}

// String is Slurm's form, as "afterok:12,afterany:13_4".
func (w *Waits) String() string {
	var parts []string
	for _, n := range w.Needs {
		part := n.Type
		if n.Type != job.Singleton {
			part += fmt.Sprintf(":%d", n.Job)
		}
		if n.Task != nil {
			part += fmt.Sprintf("_%d", *n.Task)
		}
		if n.Delay > 0 {
			part += fmt.Sprintf("+%d", n.Delay/sched.Minute)
		}
		parts = append(parts, part)
	}
	for _, n := range w.Tasks {
		parts = append(parts, fmt.Sprintf("%s:%d", job.AfterCorr, n))
	}
	return strings.Join(parts, map[bool]string{false: ",", true: "?"}[w.Any])
}
