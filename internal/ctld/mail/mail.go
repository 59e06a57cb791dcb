package mail

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/wneessen/go-mail"

	"gbatch/internal/control"
	"gbatch/internal/ctld/fair"
	"gbatch/internal/ctld/jobstore"
	"gbatch/internal/ctld/notice"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// Bounds of the mailer: what waits, and how often and how long one is tried.
const (
	mailsWaiting = 1000
	mailTries    = 4
	mailTimeout  = 20 * time.Second
)

// Mailer sends mails one after the other, after the change that they tell of is
// durable. Each is sent once at most: what waits when the process ends is not
// kept, and one that cannot be sent is logged and dropped. Nothing waits for it.
type Mailer struct {
	conf  func() *site.Mail // nil: none is sent
	jobs  *jobstore.Reader
	log   *slog.Logger
	Pause time.Duration // before the second try; then twice that, and so on

	tooMany, unsent notice.Notice

	more  chan struct{} // a mail waits; buffered
	mu    sync.Mutex
	queue *fair.Queue[control.Moved] // one user's many mails, or slow ones, do not hold up another's
}

// New is a mailer; conf says where mail goes, nil that none is sent.
func New(conf func() *site.Mail, jobs *jobstore.Reader, log *slog.Logger) *Mailer {
	return &Mailer{conf: conf, jobs: jobs, log: log, queue: fair.NewQueue[control.Moved](mailsWaiting), more: make(chan struct{}, 1), Pause: 5 * time.Second,
		tooMany: notice.Notice{Log: log, Level: slog.LevelWarn, Text: "mails are not sent: too many wait"},
		unsent:  notice.Notice{Log: log, Level: slog.LevelWarn, Text: "mail not sent"},
	}
}

// Take never blocks.
func (m *Mailer) Take(moved control.Moved) {
	if m.conf() == nil {
		return
	}
	user := ""
	if j := m.jobs.View().Job(moved.Job); j != nil {
		user = j.Owner.User
	}
	m.mu.Lock()
	out, ok := m.queue.Put(user, 1, moved)
	m.mu.Unlock()
	if !ok {
		m.tooMany.Happened("job", out.Job)
	}
	m.ring()
}

func (m *Mailer) ring() {
	select {
	case m.more <- struct{}{}:
	default: // it was said already
	}
}

// next is the mail whose turn it is, and how many wait after it.
func (m *Mailer) next() (moved control.Moved, ok bool, left int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, moved = range m.queue.Take(1, 1) {
		ok = true
	}
	return moved, ok, m.queue.Len()
}

// Run sends until ctx is done.
func (m *Mailer) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			if _, any, left := m.next(); any {
				m.log.Warn("mails not sent: gctld stops", "mails", 1+left)
			}
			return
		case <-m.more:
			moved, ok, left := m.next()
			if left > 0 {
				m.ring()
			}
			if !ok {
				continue
			}
			if err := m.send(ctx, moved); err != nil && ctx.Err() == nil {
				m.unsent.Happened("job", moved.Job, "error", err)
			}
		}
	}
}

func (m *Mailer) send(ctx context.Context, moved control.Moved) error {
	j, err := m.jobs.Find(fmt.Sprint(moved.Job))
	if err != nil {
		return err
	}
	spec, err := m.jobs.Document(j)
	if err != nil {
		return err
	}
	cfg := m.conf()
	to, what := recipients(spec.Request.Extra, moved, j)
	if len(to) == 0 || cfg == nil {
		return nil
	}
	msg := mail.NewMsg()
	if err := msg.From(cfg.From); err != nil {
		return err
	}
	if err := msg.To(to...); err != nil {
		return err
	}
	msg.Subject(fmt.Sprintf("job %s (%s) %s", j.ID(), j.Name, what))
	msg.SetBodyString(mail.TypeTextPlain, mailText(j, moved, what))
	pause := m.Pause
	for try := 1; ; try++ {
		err := deliver(ctx, cfg.SMTP, msg)
		if err == nil || try == mailTries || ctx.Err() != nil {
			return err
		}
		m.log.Debug("mail is tried again", slog.Uint64("job", uint64(j.Number)), slog.Any("error", err))
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
		pause *= 2
	}
}

func deliver(ctx context.Context, addr string, msg *mail.Msg) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	c, err := mail.NewClient(host, mail.WithPort(n), mail.WithTLSPolicy(mail.TLSOpportunistic), mail.WithTimeout(mailTimeout))
	if err != nil {
		return err
	}
	return c.DialAndSendWithContext(ctx, msg)
}

// recipients is who is told of a change, and what happened in a word or two.
func recipients(x *job.Extra, moved control.Moved, j *state.Job) (to []string, what string) {
	if x == nil {
		return nil, ""
	}
	event, what := What(moved.From, moved.To, j)
	return map[string][]string{"queue": x.EmailOnQueue, "run": x.EmailOnRun, "end": x.EmailOnEnd, "halt": x.EmailOnHalt, "restart": x.EmailOnRestart}[event], what
}

// What says which of site.WebhookEvents a change of a job's state is, if it is one
// that people want to hear of, and the same in a word or two.
func What(from, to job.State, j *state.Job) (event, words string) {
	switch {
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

func mailText(j *state.Job, moved control.Moved, what string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Job %s (%s) of %s, project %s, %s.\n", j.ID(), j.Name, j.Owner.User, j.Owner.Project, what)
	if moved.To.Final() && j.Text != "" {
		fmt.Fprintf(&b, "%s\n", j.Text)
	}
	if j.Next != 0 && moved.To == job.Halted {
		fmt.Fprintf(&b, "Job %d continues it.\n", j.Next)
	}
	fmt.Fprintf(&b, "\ngqueue show %s tells more.\n", j.ID())
	return b.String()
}
