package jobs

import "gbatch/internal/api"

// StepState is the state of a step in Slurm's words, which are the only ones that
// there are for it.
func StepState(s *api.Step) string {
	switch {
	case s.Ended.IsZero():
		return "RUNNING"
	case s.OOM:
		return "OUT_OF_MEMORY"
	case s.Cancel != "", s.Signal != 0: // as Slurm has it, whoever sent the signal
		return "CANCELLED"
	case s.Code != 0:
		return "FAILED"
	}
	return "COMPLETED"
}
