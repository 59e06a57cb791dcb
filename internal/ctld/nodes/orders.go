package nodes

import (
	"fmt"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// prepulls are the images that a node shall have ahead. One whose document or
// credentials cannot be read is left out: the job's start will tell.
func (s *Exchange) prepulls(v *state.View, n *state.Node) []api.Prepull {
	var out []api.Prepull
	for _, p := range n.Prepulls {
		j := v.Job(p.Job)
		if j == nil || j.State != job.Queued {
			continue
		}
		spec, err := s.Jobs.Document(j)
		if err != nil || spec.Request.Docker.Image == "" {
			continue
		}
		q := api.Prepull{Job: j.Number, Image: spec.Request.Docker.Image}
		if j.Attempt != nil {
			q.Digest = j.Attempt.Image
		}
		if p := v.Job(j.Parent); j.Sealed || p != nil && p.Sealed {
			kept, err := s.Jobs.Unseal(j.Document())
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

// addSecrets completes an order with what the node has to have and has not.
func (s *Exchange) addSecrets(o *api.Order, j *state.Job, has uint32) error {
	owner := j
	if j.Parent > 0 {
		if owner = s.Loop.View().Job(j.Parent); owner == nil {
			return fmt.Errorf("task %s runs and its array is gone", j.ID())
		}
	}
	registry := o.Run != nil && owner.Sealed
	secrets := owner.Secrets > 0 && owner.Secrets != has
	if !registry && !secrets {
		return nil
	}
	kept, err := s.Jobs.Unseal(j.Document())
	if err != nil {
		return err
	}
	if registry && kept.Credential != (api.Credential{}) {
		o.Run.Registry = &kept.Credential
	}
	if secrets {
		o.Secrets = &api.Secrets{Version: owner.Secrets, Values: kept.Secrets}
	}
	return nil
}
