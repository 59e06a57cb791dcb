package webhook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"gbatch/internal/control"
	"gbatch/internal/ctld/jobstore"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/ctld/mail"
	"gbatch/internal/ctld/notice"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/internal/store"
)

// Bounds of the sender.
const (
	maxWaiting = 10_000         // notices, of one user while more are free than they have; what happens beyond is not told, and said in the log
	maxSending = 8              // messages under way at once
	maxAge     = 24 * time.Hour // of a message that its service does not take; then it is given up
	sendTime   = 10 * time.Second
	firstPause = 5 * time.Second // after a service's first failure; then twice that, and so on
	lastPause  = 10 * time.Minute
)

// key is that of a record.
type key struct {
	job     job.Number
	version uint64
}

// waiting is a notice that not all services have taken.
type waiting struct {
	Notice
	took map[string]bool // services, by name: a restart asks them again
	busy bool            // somebody sends it
}

// service is how one of them fares.
type service struct {
	failures int
	until    time.Time // nothing is sent to it before
}

// Sender sends messages in the background, each notice's until all services have
// taken it. A service that fails is left alone for some time, and holds up no other.
type Sender struct {
	conf  func() []site.Webhook
	jobs  *jobstore.Reader
	loop  *loop.Loop
	log   *slog.Logger
	http  *http.Client
	now   func() time.Time
	Pause time.Duration // after the first failure

	tooMany, unsent, givenUp notice.Notice

	more     chan struct{} // something may be due; buffered
	mu       sync.Mutex
	list     map[key]*waiting
	users    map[string]int // how many of list each user's jobs have
	services map[string]*service
}

// Config is what a sender works with.
type Config struct {
	Services func() []site.Webhook
	Jobs     *jobstore.Reader
	Loop     *loop.Loop
	Log      *slog.Logger
	Now      func() time.Time
}

// Open reads what was not told before a restart.
func Open(c Config, st *store.Store) (*Sender, error) {
	s := &Sender{
		conf: c.Services, jobs: c.Jobs, loop: c.Loop, log: c.Log, now: c.Now, Pause: firstPause, more: make(chan struct{}, 1),
		list: map[key]*waiting{}, users: map[string]int{}, services: map[string]*service{},
		tooMany: notice.Notice{Log: c.Log, Level: slog.LevelWarn, Text: "services are not told of jobs: too many messages wait"},
		unsent:  notice.Notice{Log: c.Log, Level: slog.LevelWarn, Text: "message to a webhook is tried again"},
		givenUp: notice.Notice{Log: c.Log, Level: slog.LevelError, Text: "message to a webhook was given up"},
		http: &http.Client{Timeout: sendTime, Transport: &http.Transport{MaxIdleConnsPerHost: maxSending, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: sendTime},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
	err := st.All(state.KindNotice, func(r state.Record) error {
		w := &waiting{took: map[string]bool{}}
		if err := json.Unmarshal(r.Value, &w.Notice); err != nil {
			return fmt.Errorf("message about job %d: %w", r.Job, err)
		}
		s.add(key{r.Job, r.Seq}, w)
		return nil
	})
	s.ring()
	return s, err
}

// Records are what is to be stored with changes, so that services are told of them.
func (s *Sender) Records(moved []control.Moved) (out []state.Record) {
	if len(moved) == 0 || len(s.conf()) == 0 {
		return nil
	}
	s.mu.Lock()
	room := maxWaiting - len(s.list)
	has := maps.Clone(s.users)
	s.mu.Unlock()
	for _, m := range moved {
		if has[m.User] >= room { // so nobody's jobs can take the places of all others'
			s.tooMany.Happened("job", m.Job, "user", m.User)
			continue
		}
		has[m.User]++
		room--
		out = append(out, state.Record{Kind: state.KindNotice, Job: m.Job, Seq: m.Version,
			Value: state.Encode(Notice{From: m.From, To: m.To, AtMS: s.now().UnixMilli(), User: m.User})})
	}
	return out
}

// add puts a message into the list; called with mu held, or before Run.
func (s *Sender) add(k key, w *waiting) {
	if s.list[k] == nil {
		s.users[w.User]++
	}
	s.list[k] = w
}

// drop is called with mu held.
func (s *Sender) drop(k key, w *waiting) {
	delete(s.list, k)
	if s.users[w.User]--; s.users[w.User] == 0 {
		delete(s.users, w.User)
	}
}

// Take begins to tell of what was stored. It never blocks.
func (s *Sender) Take(stored []state.Record) {
	s.mu.Lock()
	for _, r := range stored {
		w := &waiting{took: map[string]bool{}}
		if json.Unmarshal(r.Value, &w.Notice) == nil { // always, as we wrote it
			s.add(key{r.Job, r.Seq}, w)
		}
	}
	s.mu.Unlock()
	s.ring()
}

func (s *Sender) ring() {
	select {
	case s.more <- struct{}{}:
	default: // it was said already
	}
}

// lookEvery is how often a sender looks for services whose time has come.
const lookEvery = time.Second

// Run sends until ctx is done.
func (s *Sender) Run(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	slots := make(chan struct{}, maxSending)
	tick := time.NewTicker(min(lookEvery, s.Pause))
	defer tick.Stop()
	for {
		for _, k := range s.due() {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return
			}
			work.Go(func() { // ends with its message, or with ctx
				s.tell(ctx, k)
				<-slots
			})
		}
		select {
		case <-ctx.Done():
			return
		case <-s.more:
		case <-tick.C:
		}
	}
}

// due are the notices for which a service may be asked now, oldest jobs first, and
// marks them as being sent.
func (s *Sender) due() (list []key) {
	now, all := s.now(), s.conf()
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, w := range s.list {
		ready := !slices.ContainsFunc(all, func(h site.Webhook) bool { return !w.took[h.Name] }) || now.Sub(time.UnixMilli(w.AtMS)) > maxAge
		for _, h := range all {
			ready = ready || !w.took[h.Name] && !now.Before(s.of(h.Name).until)
		}
		if ready && !w.busy {
			w.busy = true
			list = append(list, k)
		}
	}
	slices.SortFunc(list, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.version, b.version))
	})
	return list
}

// of is how a service fares; called with mu held.
func (s *Sender) of(name string) *service {
	if s.services[name] == nil {
		s.services[name] = &service{}
	}
	return s.services[name]
}

// tell tells each service that wants to know, and has not taken it, of one change.
func (s *Sender) tell(ctx context.Context, k key) {
	s.mu.Lock()
	w := s.list[k]
	n, took := w.Notice, maps.Clone(w.took)
	s.mu.Unlock()
	left := s.send(ctx, k, n, took)
	if ctx.Err() != nil {
		return
	}
	if left > 0 && s.now().Sub(time.UnixMilli(n.AtMS)) > maxAge {
		s.givenUp.Happened("job", k.job, "services", left)
		left = 0
	}
	if left == 0 {
		if err := s.loop.Keep(ctx, state.Record{Kind: state.KindNotice, Job: k.job, Seq: k.version}); err != nil {
			return // it is told again after a restart
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.took, w.busy = took, false; left == 0 {
		s.drop(k, w)
	}
}

// send tells each service of one change, notes in took who has taken it, and
// returns how many have not.
func (s *Sender) send(ctx context.Context, k key, n Notice, took map[string]bool) (left int) {
	j, err := s.jobs.Find(fmt.Sprint(k.job))
	if err != nil {
		s.givenUp.Happened("job", k.job, "error", err) // no longer known
		return 0
	}
	event, _ := mail.What(n.From, n.To, j)
	for _, h := range s.conf() {
		if took[h.Name] || event == "" || !h.Wants(event, j.Owner.Project, j.Owner.User) {
			took[h.Name] = true
			continue
		}
		s.mu.Lock()
		down := s.now().Before(s.of(h.Name).until)
		s.mu.Unlock()
		if down {
			left++
			continue
		}
		err := s.post(ctx, &h, fmt.Sprintf("%s.%d", j.Identity(), k.version), message(h.Format, event, n, j))
		if s.fared(&h, err); err != nil {
			left++
			continue
		}
		took[h.Name] = true
	}
	return left
}

// fared takes in how a service took a message.
func (s *Sender) fared(h *site.Webhook, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sv := s.of(h.Name)
	if err == nil {
		*sv = service{}
		return
	}
	if s.now().Before(sv.until) {
		return // another message has failed at the same time
	}
	sv.until = s.now().Add(min(s.Pause<<min(sv.failures, 20), lastPause))
	sv.failures++
	s.unsent.Happened("webhook", h.Name, "error", err, "failures", sv.failures)
}

// post sends one message. Errors do not have the address, which may be a secret.
func (s *Sender) post(ctx context.Context, h *site.Webhook, id string, text []byte) error {
	secret, err := secretOf(h)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(text))
	if err != nil {
		return errors.New("the address is none")
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "gbatch")
	sign(r.Header, stamp{id, s.now()}, text, secret)
	resp, err := s.http.Do(r)
	if err != nil {
		return errors.Unwrap(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can serve again
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("it answers %s", resp.Status)
	}
	return nil
}
