package slurm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMailTypes: who is told of what is what Slurm 22.05 sends a mail for, where there is
// such a thing here, and a note where not.
func TestMailTypes(t *testing.T) {
	for types, want := range map[string]string{
		"END":                       "end",
		"end,fail":                  "end,fail",
		"ALL":                       "begin,end,fail,requeue",
		"ALL,TIME_LIMIT_80":         "begin,end,fail,requeue,limit-80",
		"BEGIN,BEGIN,REQUEUE":       "begin,requeue",
		"TIME_LIMIT,TIME_LIMIT_50":  "limit,limit-50",
		"TIME_LIMIT_90,END,NONE":    "",
		"END,INVALID_DEPEND":        "end",
		"INVALID_DEPEND":            " --mail-type: INVALID_DEPEND is not used: a job whose dependency cannot come true ends as CANCELLED, which END tells of",
		"STAGE_OUT,TIME_LIMIT_50":   `limit-50 --mail-type: "STAGE_OUT" is not used: mails are sent for BEGIN, END, FAIL, REQUEUE and TIME_LIMIT, with _50, _80 and _90`,
		"ARRAY_TASKS":               ` --mail-type: "ARRAY_TASKS" is not used: mails are sent for BEGIN, END, FAIL, REQUEUE and TIME_LIMIT, with _50, _80 and _90`,
		"TIME_LIMIT_80,END -a 1-2":  "end --mail-type: TIME_LIMIT_80 is not used: each task of an array has a time limit of its own, and mails are about the whole",
		"END --mail-user=ann@b.org": "end to ann@b.org",
	} {
		sub, err := Parse(fmt.Appendf(nil, "#!/bin/sh\n#SBATCH --image=a --mem=1G --mail-user=me@example.org --mail-type=%s\ntrue\n", types), surroundings)
		if err != nil {
			t.Errorf("%s: %v", types, err)
			continue
		}
		got := ""
		for _, x := range sub.Spec.Gbatch.Notify {
			got += strings.Join(x.On, ",")
			if x.To != "me@example.org" {
				got += " to " + x.To
			}
		}
		for _, n := range sub.Notes {
			got += " " + n.Path + ": " + n.Message
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", types, diff)
		}
	}
}
