package jobs

import (
	"fmt"
	"strings"

	"gbatch/accounting"
	"gbatch/internal/api"
	"gbatch/internal/job"
)

// siteNotes tells what this site will do otherwise than a job asks.
func (s *Submissions) siteNotes(spec *job.Spec) []api.Note {
	var out []api.Note
	if g, most := spec.Gbatch, s.Conf().Limits.MaxGrace; g != nil && g.StopGrace > job.Duration(most) {
		out = append(out, api.Note{Path: "gbatch.stopGrace", Message: fmt.Sprintf("is %s, and this site allows %s: that is what it gets", g.StopGrace, job.Duration(most))})
	}
	if g := spec.Gbatch; g != nil && g.IdleGPU != nil && !spec.AsksGPUs() {
		out = append(out, api.Note{Path: "gbatch.idleGpu", Message: "is about GPUs, and the job asks for none"})
	}
	if spec.Mails() && s.Conf().Mail == nil {
		path := "gbatch.notify"
		if spec.Request.Extra.Mails() {
			path = "request.extra"
		}
		out = append(out, api.Note{Path: path, Message: "names mail addresses, and this site sends no mail"})
	}
	if g := spec.Gbatch; g != nil && !s.Conf().Notify.PlainHTTP {
		for i, x := range g.Notify {
			if strings.HasPrefix(x.To, "http://") {
				out = append(out, api.Note{Path: fmt.Sprintf("gbatch.notify[%d].to", i), Message: "is http://, and this site allows https:// alone: nobody is told there"})
			}
		}
	}
	return out
}

// warnBudget is the part of a budget, in percent, from which a submission is
// told that it will be used up.
const warnBudget = 80

// budgetNote tells a submitter whose project's budget is nearly or all used.
func budgetNote(b *accounting.Budget) []api.Note {
	if b == nil || b.Percent() < warnBudget {
		return nil
	}
	period := "budget"
	if b.Monthly {
		period = "month's budget"
	}
	text := fmt.Sprintf("project %s has used %d %% of its %s: %s of %s GPU-hours", b.Account, b.Percent(), period, hours(b.UsedMinutes), hours(b.MaxMinutes))
	if b.UsedMinutes >= b.MaxMinutes {
		text += "; its jobs wait in the queue until there is more"
	}
	return []api.Note{{Message: text}}
}

func hours(minutes int64) string { return fmt.Sprintf("%.1f", float64(minutes)/60) }
