package ctld

import (
	"encoding/json"
	"fmt"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// document is what a job was asked as. Jobs that the controller made itself
// share that of the job they come from.
func (s *Server) document(j *state.Job) (*job.Spec, error) {
	doc, ok, err := s.store.Get(state.Record{Kind: state.KindSpec, Job: j.Document()})
	if err != nil || !ok {
		return nil, fmt.Errorf("read document of job %d (there: %t): %w", j.Number, ok, err)
	}
	spec := new(job.Spec)
	if err := json.Unmarshal(doc, spec); err != nil {
		return nil, fmt.Errorf("decode document of job %d: %w", j.Number, err)
	}
	if j.Template != 0 && spec.Gbatch != nil {
		spec.Gbatch.Cron = nil // that is its template's
	}
	return spec, nil
}
