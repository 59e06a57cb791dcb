package mail

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/wneessen/go-mail"

	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// timeout is that of one mail.
const timeout = 20 * time.Second

// Change is what became of a job, as it is stored with what is to be told of it.
type Change struct {
	From    job.State `json:"from,omitempty"` // empty: a new job
	To      job.State `json:"to"`
	Percent int       `json:"percent,omitempty"` // of its time limit that is used, where that is all that changed; else 0
}

// Letter is a mail about a job.
type Letter struct {
	Receivers []string
	Change
	Job *state.Job
}

// Send hands a mail to the relay.
func Send(ctx context.Context, cfg *site.Mail, l Letter) error {
	msg, err := l.message(cfg.From)
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(cfg.SMTP)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	c, err := mail.NewClient(host, mail.WithPort(n), mail.WithTLSPolicy(mail.TLSOpportunistic), mail.WithTimeout(timeout))
	if err != nil {
		return err
	}
	conn, err := c.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return &Unreached{err}
	}
	defer c.CloseWithSMTPClient(conn) // the mail is taken or not, however the two part
	return c.SendWithSMTPClient(conn, msg)
}

// message is the mail. What users and nodes wrote is in its subject and its text.
func (l Letter) message(from string) (*mail.Msg, error) {
	msg := mail.NewMsg()
	if err := msg.From(from); err != nil {
		return nil, err
	}
	if err := msg.To(l.Receivers...); err != nil {
		return nil, err
	}
	_, what := l.What(l.Job)
	msg.Subject(fmt.Sprintf("job %s (%s) %s", l.Job.ID(), l.Job.Name, what))
	msg.SetBodyString(mail.TypeTextPlain, l.text(what))
	return msg, nil
}

// Unreached is that the relay was not shown the mail.
type Unreached struct{ error }

// Recipients is who is told of an event by the addresses that GPULab's form has for each.
func Recipients(x *job.Extra, event string) []string {
	if x == nil {
		return nil
	}
	return map[string][]string{"queue": x.EmailOnQueue, "run": x.EmailOnRun, "end": x.EmailOnEnd, "halt": x.EmailOnHalt, "restart": x.EmailOnRestart}[event]
}

// What says which of the events of a webhook's "on" a change is, or "limit", if it is one
// that people want to hear of, and the same in a few words.
func (c Change) What(j *state.Job) (event, words string) {
	from, to := c.From, c.To
	switch {
	case c.Percent > 0:
		return "limit", fmt.Sprintf("has used %d %% of its time limit of %s", c.Percent, job.Duration(j.LimitNow()/1000))
	case to == job.Queued && (from.Active() || j.Restart != nil):
		return "restart", "is queued again"
	case to == job.Queued && from == "":
		return "queue", "is queued"
	case to == job.Running:
		return "run", "runs"
	case to == job.Halted:
		return "halt", "was halted"
	case to.Final():
		return "end", strings.TrimSpace(fmt.Sprintf("is %s %s", to, j.Reason))
	}
	return "", ""
}

func (l Letter) text(what string) string {
	j := l.Job
	var b strings.Builder
	fmt.Fprintf(&b, "Job %s (%s) of %s, project %s, %s.\n", j.ID(), j.Name, j.Owner.User, j.Owner.Project, what)
	if l.To.Final() && j.Text != "" {
		fmt.Fprintf(&b, "%s\n", j.Text)
	}
	if j.Next != 0 && l.To == job.Halted {
		fmt.Fprintf(&b, "Job %d continues it.\n", j.Next)
	}
	fmt.Fprintf(&b, "\ngqueue show %s tells more.\n", j.ID())
	return b.String()
}
