package ctld

import (
	"encoding/json"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// prepulls are the images that a node shall have ahead. One whose document or
// credentials cannot be read is left out: the job's start will tell.
func (s *Server) prepulls(v *state.View, n *state.Node) []api.Prepull {
	var out []api.Prepull
	for _, p := range n.Prepulls {
		j := v.Job(p.Job)
		if j == nil || j.State != job.Queued {
			continue
		}
		doc, ok, err := s.store.Get(state.Record{Kind: state.KindSpec, Job: j.Document()})
		var spec job.Spec
		if err != nil || !ok || json.Unmarshal(doc, &spec) != nil || spec.Request.Docker.Image == "" {
			continue
		}
		q := api.Prepull{Job: j.Number, Image: spec.Request.Docker.Image}
		if j.Attempt != nil {
			q.Digest = j.Attempt.Image
		}
		if p := v.Job(j.Parent); j.Sealed || p != nil && p.Sealed {
			kept, err := s.unseal(j.Document())
			if err != nil {
				continue
			}
			if kept.Credential != (api.Credential{}) {
				q.Registry = &kept.Credential
			}
		}
		out = append(out, q)
	}
	return out
}
