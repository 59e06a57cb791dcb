package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gbatch/internal/ctld/mail"
)

// mail sends one mail about a user's job. Users name any address, and the mail comes from
// the site: so what one user has sent in a day is bounded. What the mail server refuses
// counts as well, or it could be asked for addresses without end; what did not get as far
// does not, or nobody had any left after it was away.
func (s *Sender) mail(ctx context.Context, l mail.Letter) error {
	cfg, user := s.conf(), l.Job.Owner.User
	perDay := cfg.Limits.Of(user).Mails
	var cost time.Duration
	if perDay > 0 {
		cost = day / time.Duration(perDay)
		s.mu.Lock()
		wait := s.mails.Spend(s.now(), user, cost, day)
		s.mu.Unlock()
		if wait > 0 {
			s.mailed("over_limit")
			return fmt.Errorf("%s has had %d mails sent within a day (limits.perUser.mailsPerDay); the next one can be in %v", user, perDay, max(wait.Round(time.Second), time.Second))
		}
	}
	err := mail.Send(ctx, cfg.Mail, l)
	if err == nil {
		s.mailed("sent")
		return nil
	}
	s.mailed("failed")
	if errors.As(err, new(*mail.Unreached)) {
		s.mu.Lock()
		s.mails.Return(user, cost)
		s.mu.Unlock()
	}
	return &fault{"the site's mail server does not take it", err}
}

const day = 24 * time.Hour
