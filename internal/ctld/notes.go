package ctld

import (
	"fmt"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

// siteNotes tells what this site will do otherwise than a job asks.
func (s *Server) siteNotes(spec *job.Spec) []api.Note {
	var out []api.Note
	if g, most := spec.Gbatch, s.cfg().Limits.MaxGrace; g != nil && g.StopGrace > job.Duration(most) {
		out = append(out, api.Note{Path: "gbatch.stopGrace", Message: fmt.Sprintf("is %s, and this site allows %s: that is what it gets", g.StopGrace, job.Duration(most))})
	}
	if g := spec.Gbatch; g != nil && g.IdleGPU != nil && spec.Request.Resources.GPUs == 0 {
		out = append(out, api.Note{Path: "gbatch.idleGpu", Message: "is about GPUs, and the job asks for none"})
	}
	if spec.Request.Extra.Mails() && !s.mails() {
		out = append(out, api.Note{Path: "request.extra", Message: "names mail addresses, and this site sends no mail"})
	}
	return out
}

// mails says whether this site sends mail.
func (s *Server) mails() bool { return s.cfg().Mail != nil }
