package jobs

import (
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

// Ran is how long the job runs or, to the nearest second, ran: of its begin and its end
// each is known when the controller hears of it, so that four seconds may come out as 3.99.
func Ran(j *api.Job, now time.Time) time.Duration {
	switch {
	case j.Started.IsZero() || j.State.Pending():
		return 0
	case !j.Ended.IsZero():
		return j.Ended.Sub(j.Started).Round(time.Second)
	}
	return now.Sub(j.Started)
}

// StartOf is when the job started, or is expected to.
func StartOf(j *api.Job) time.Time {
	if j.Started.IsZero() || j.State.Pending() {
		return j.EstStart
	}
	return j.Started
}

// SlurmStartOf is StartOf as Slurm has it: of a job that waits for its begin time,
// that time.
func SlurmStartOf(j *api.Job) time.Time {
	if !j.Begin.IsZero() {
		return j.Begin
	}
	return StartOf(j)
}

// EndOf is when the job ended, or must end.
func EndOf(j *api.Job) time.Time {
	if j.Ended.IsZero() && j.State == job.Running && j.LimitS > 0 {
		return j.Started.Add(time.Duration(j.LimitS) * time.Second)
	}
	return j.Ended
}
