package ctld

import (
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

// TestTemplate: a job with a time table is shown as waiting for its next time,
// keeps what is sealed for it, and never runs itself.
func TestTemplate(t *testing.T) {
	s := newSite(t, nil)
	n := s.node("n1")
	doc := `{"name":"nightly","request":{"resources":{"gpus":0,"cpus":1,"cpuMemoryGb":1},
		"docker":{"image":"user:secret@registry.example.org/train:1","command":"true"}},"gbatch":{"cron":"0 3 29 2 *"}}`
	s.submit(&api.SubmitRequest{Job: []byte(doc)}, "")
	n.sync(nil)
	s.stop()
	s.start()
	d := s.job("1")
	if d.State != job.Queued || d.Reason != "BeginTime" || d.EstStart.Month() != time.February || d.EstStart.Day() != 29 || len(d.Spec.Gbatch.Cron) != 1 {
		t.Errorf("the template is %+v", d.Job)
	}
	e, err := s.Explain(t.Context(), "1")
	if err != nil || len(e.Reasons) != 1 || e.Estimate == nil || !e.Estimate.At.Equal(d.EstStart) {
		t.Errorf("explained as %+v, %v", e, err)
	}
	s.act("cancel", "1")
	if _, err := s.server.jobs.Unseal(1); err == nil {
		t.Error("the credentials are kept after the end")
	}
}
