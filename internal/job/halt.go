package job

// HaltSignal is what a job is sent when it is halted to make room; empty: TERM.
// GPULab, whose format the native one is, sends USR1, which its programs answer by
// saving their work and exiting with 123. Programs of other systems know TERM.
func (s *Spec) HaltSignal() string {
	switch g := s.gbatch(); {
	case g.HaltSignal != "" || !s.Request.Scheduling.Restartable || s.Request.Scheduling.AllowHaltWithoutSignal:
		return g.HaltSignal
	case g.Source == "":
		return "USR1"
	}
	return ""
}
