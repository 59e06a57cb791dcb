package job

import (
	"fmt"
)

// warnSignals are those that a program can be told something by.
var warnSignals = []string{"USR1", "USR2", "HUP", "INT", "TERM"}

// checkWarning finds warnings that would never be sent, and gives a warning
// without a signal its own.
func (d *decoder) checkWarning(gn *node, s *Spec) {
	g := s.Gbatch
	limit := s.Request.Scheduling.MaxDuration
	switch {
	case g.WarnBefore == 0 && g.WarnSignal != "":
		d.ProblemAt(gn, "warnSignal", "is never sent without \"warnBefore\"", "say how long before the time limit, as \"5 minutes\"")
	case g.WarnBefore > 0 && limit > 0 && g.WarnBefore >= limit:
		d.ProblemAt(gn, "warnBefore", fmt.Sprintf("must be less than request.scheduling.maxDuration, %s, is %s", limit, g.WarnBefore), "")
	case g.WarnBefore > 0 && g.WarnSignal == "":
		g.WarnSignal = warnSignals[0]
	}
}

// maxHaltGrace bounds how long others wait for a job that makes room for them.
const maxHaltGrace Duration = 3600

func (d *decoder) checkHalt(gn *node, s *Spec) {
	g := s.Gbatch
	if g.HaltGrace > maxHaltGrace {
		d.ProblemAt(gn, "haltGrace", fmt.Sprintf("must be at most %s, is %s", maxHaltGrace, g.HaltGrace), "")
	}
	if (g.HaltSignal != "" || g.HaltGrace > 0) && !s.Request.Scheduling.Restartable {
		d.Note(gn, "haltSignal and haltGrace matter for restartable jobs only, and this job is not restartable")
	}
}
