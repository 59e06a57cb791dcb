package webhook

import (
	"strings"
	"testing"
	"time"

	"gbatch/internal/ctld/mail"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// TestMailsWhileAway: mails that a mail server which is away was not shown take nothing
// of what a user may send, whose jobs hear nothing of where it is.
func TestMailsWhileAway(t *testing.T) {
	cfg := site.Default()
	cfg.Mail = &site.Mail{SMTP: "127.0.0.1:1", From: "gbatch@example.org"}
	cfg.Limits.PerUser.Mails = 1
	outcomes := map[string]int{}
	now := time.Unix(1_800_000_000, 0)
	s := &Sender{conf: func() *site.Config { return &cfg }, now: func() time.Time { return now }, mailed: func(o string) { outcomes[o]++ }}
	l := mail.Letter{Receivers: []string{"ann@example.org"}, Change: mail.Change{To: job.Finished}, Job: &state.Job{Number: 1, State: job.Finished, Owner: &state.Owner{User: "ann"}}}
	for range 3 {
		err := s.mail(t.Context(), l)
		if err == nil || err.Error() != "the site's mail server does not take it" || !strings.Contains(detail(err).Error(), "127.0.0.1:1") {
			t.Errorf("users read %q, the log %q", err, detail(err))
		}
	}
	if outcomes["failed"] != 3 || len(outcomes) != 1 {
		t.Errorf("counted are %v", outcomes)
	}
	s.mails.Spend(now, "ann", day, day)
	if err := s.mail(t.Context(), l); err == nil || !strings.Contains(err.Error(), "can be in 24h0m0s") {
		t.Errorf("above the bound: %v", err)
	}
	now = now.Add(day)
	if err := s.mail(t.Context(), l); err == nil || strings.Contains(err.Error(), "mailsPerDay") {
		t.Errorf("a day later: %v", err)
	}
}
