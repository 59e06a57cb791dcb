package mail

import (
	"log/slog"
	"testing"

	"gbatch/internal/control"
	"gbatch/internal/ctld/jobstore"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// TestTurns: however many mails of one user wait, another's is the next but one.
func TestTurns(t *testing.T) {
	v := &state.View{}
	for n := range job.Number(2 * mailsWaiting) {
		user := "ann"
		if n == mailsWaiting+1 {
			user = "bob"
		}
		v.Jobs.Put(n+1, &state.Job{Number: n + 1, Owner: &state.Owner{User: user}})
	}
	m := New(func() *site.Mail { return &site.Mail{} }, &jobstore.Reader{View: func() *state.View { return v }}, slog.New(slog.DiscardHandler))
	for n := range job.Number(2 * mailsWaiting) {
		m.Take(control.Moved{Job: n + 1})
	}
	if _, _, left := m.next(); left != mailsWaiting-1 {
		t.Errorf("%d wait, want %d", left, mailsWaiting-1)
	}
	if moved, _, _ := m.next(); moved.Job != mailsWaiting+2 {
		t.Errorf("the next but one is of job %d, want %d", moved.Job, mailsWaiting+2)
	}
}
