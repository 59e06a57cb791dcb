package hooks

import (
	"strconv"

	"gbatch/internal/node"
)

// endFacts say how a rank ended; nil: it never began.
func endFacts(e *node.Exit) []string {
	if e == nil {
		return nil
	}
	return []string{"GBATCH_EXIT_CODE=" + strconv.Itoa(e.Code), "GBATCH_EXIT_SIGNAL=" + strconv.Itoa(e.Signal), "GBATCH_REASON=" + string(e.Reason)}
}

// role tells a program that serves for several what it is run as.
func role(name string) []string { return []string{"SLURM_SCRIPT_CONTEXT=" + name} }
