package wire

import (
	"testing"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

func TestHeld(t *testing.T) {
	const after = "; `gcancel --release 7` lets it go on"
	for name, tc := range map[string]struct {
		reason     job.Reason
		text       string
		code, said string
	}{
		"by its user":           {job.ByUser, "held by ann", "JobHeldUser", "held by ann" + after},
		"by an operator":        {job.ByAdmin, "held by op", "JobHeldAdmin", "held by op, an operator, whom to ask: only operators let it go on, by `gcancel --release 7`"},
		"by the prolog":         {job.Prolog, "prologs have failed on n1, n2", "PROLOG", "prologs have failed on n1, n2" + after},
		"it waited in a backup": {job.Server, "it may have run", "RESTORED", "it may have run" + after},
		"it ran in a backup":    {job.NodeFail, "it may have run on", "RESTORED", "it may have run on" + after},
		"by an older version":   {job.None, "", "JobHeldUser", "held" + after},
	} {
		code, said := Held(&state.Job{Number: 7, State: job.OnHold, Reason: tc.reason, Text: tc.text})
		if code != tc.code || said != tc.said {
			t.Errorf("%s: %s: %q, want %s: %q", name, code, said, tc.code, tc.said)
		}
	}
}
