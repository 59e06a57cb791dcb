package acct

import (
	"fmt"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/job"
)

// withSteps puts behind each job a line for each of its steps.
func withSteps(a *cli.App, past []api.PastJob) (out []api.PastJob) {
	for _, j := range past {
		out = append(out, j)
		for i := range j.Steps {
			out = append(out, lineOf(a, &j, &j.Steps[i]))
		}
	}
	return out
}

// stepOf is one step of a job, by its number.
func stepOf(a *cli.App, j *api.PastJob, number string) (api.PastJob, error) {
	for i := range j.Steps {
		if s := &j.Steps[i]; fmt.Sprint(s.Number) == number {
			return lineOf(a, j, s), nil
		}
	}
	return api.PastJob{}, fmt.Errorf("job %s has no step %q: gacct --steps %s lists them", jobs.ID(&j.Job), number, jobs.ID(&j.Job))
}

// lineOf is a step in the columns of jobs.
func lineOf(a *cli.App, j *api.PastJob, s *api.Step) api.PastJob {
	ran := s.Ended.Sub(s.Begun).Round(time.Second)
	if s.Ended.IsZero() {
		ran = a.Now().Sub(s.Begun)
	}
	out := api.PastJob{Used: &api.Used{ElapsedS: int64(ran / time.Second)}}
	out.Job = api.Job{ID: fmt.Sprintf("%s.%d", jobs.ID(&j.Job), s.Number), Number: j.Number, UUID: j.UUID, Name: s.Name, User: j.User, Project: j.Project, Cluster: j.Cluster, QOS: j.QOS,
		Submitted: s.Begun, Started: s.Begun, Ended: s.Ended, CPUs: s.CPUs, GPUs: float64(s.GPUs), NumNodes: len(s.Nodes), Nodes: s.Nodes, State: stepState(s)}
	if !s.Ended.IsZero() {
		out.ExitCode = new(s.Code)
	}
	if u := s.Use; u != nil {
		out.Used.CPUTimeS, out.Used.PeakMem = float64(u.UserMS+u.SystemMS)/1000, u.MaxRSSKiB<<10
	}
	return out
}

// stepState is how a step is, in the words of jobs.
func stepState(s *api.Step) job.State {
	switch {
	case s.Ended.IsZero():
		return job.Running
	case s.Cancel != "":
		return job.Cancelled
	case s.Code != 0:
		return job.Failed
	}
	return job.Finished
}

// cutStep takes the step off an ID, as 12.0 has one.
func cutStep(id string) (of, step string) {
	of, step, _ = strings.Cut(id, ".")
	return of, step
}
