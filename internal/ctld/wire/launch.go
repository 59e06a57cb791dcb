package wire

import (
	"gbatch/internal/api"
	"gbatch/internal/state"
)

// Step is what srun started in a job. Its nodes are those of the job's last
// attempt, where it was of that.
func Step(j *state.Job, l *state.Launch) api.Step {
	s := api.Step{Number: l.Number, Attempt: l.Attempt, Name: l.Name, Image: l.Image, Tasks: l.Tasks, CPUs: l.CPUs, GPUs: l.GPUs, Begun: Time(l.Begun), Code: l.Code, Signal: l.Signal, OOM: l.OOM, Cancel: l.Cancel, Use: l.Use, Nodes: []string{}}
	if l.Ended > 0 {
		s.Ended = Time(l.Ended)
	}
	if a := j.Last(); a != nil && a.Attempt == l.Attempt {
		for _, r := range l.Ranks {
			if r >= 0 && r < len(a.Ranks) {
				s.Nodes = append(s.Nodes, a.Ranks[r].Alloc.Node)
			}
		}
	}
	return s
}

// OpenSteps are those that run.
func OpenSteps(j *state.Job) (out []api.Step) {
	if j.Attempt == nil || j.Attempt.Launches == nil {
		return nil
	}
	for i := range j.Attempt.Launches.Running {
		out = append(out, Step(j, &j.Attempt.Launches.Running[i]))
	}
	return out
}
