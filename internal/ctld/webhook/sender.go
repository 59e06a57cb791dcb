package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/control/effects"
	"gbatch/internal/ctld/fair"
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
	maxSending = 16             // messages under way at once
	maxOfUser  = 2              // of these, about jobs of one user that name themselves who is told
	maxAge     = 24 * time.Hour // of a message that its service does not take; then it is given up
	sendTime   = 10 * time.Second
	maxHeader  = 64 << 10        // bytes of an answer's
	firstPause = 5 * time.Second // after a service's first failure; then twice that, and so on
	lastPause  = 10 * time.Minute
)

// key is that of a record.
type key struct {
	job     job.Number
	version uint64
}

// waiting is a notice that not all who are to be told have taken.
type waiting struct {
	moved
	took  map[string]bool // whoever has taken it, by target.id: a restart asks them again
	busy  bool            // somebody sends it
	until time.Time       // nobody is asked before
	left  []api.Untold    // who has not taken it
}

// service is how somebody fares who failed.
type service struct {
	failures int
	why      string    // the last did
	until    time.Time // nothing is sent to it before
}

// Sender sends messages in the background, each notice's until all who are to be told
// have taken it. Who fails is left alone for some time, and holds up no other.
type Sender struct {
	conf  func() *site.Config
	jobs  *jobstore.Reader
	loop  *loop.Loop
	log   *slog.Logger
	http  *http.Client // to services of the site's
	out   *http.Client // to addresses that users name
	now   func() time.Time
	Pause time.Duration // after the first failure
	Age   time.Duration // after which what is not taken is given up

	tooMany, unsent, givenUp notice.Notice

	more     chan struct{} // something may be due; buffered
	mu       sync.Mutex
	list     map[key]*waiting
	users    map[string]int      // how many of list each user's jobs have
	sending  map[string]int      // how many of those that name who is told are under way
	services map[string]*service // those that failed, by target.id
	mails    fair.Rates          // what each user has left of the mails of a day; whole again after a restart

	mailed func(outcome string)
}

// Config is what a sender works with.
type Config struct {
	Site   func() *site.Config
	Jobs   *jobstore.Reader
	Loop   *loop.Loop
	Log    *slog.Logger
	Now    func() time.Time
	Mailed func(outcome string) // counts a try to send one: sent, failed, over_limit
}

// Open reads what was not told before a restart.
func Open(c Config, st *store.Store) (*Sender, error) {
	s := &Sender{
		conf: c.Site, jobs: c.Jobs, loop: c.Loop, log: c.Log, now: c.Now, mailed: c.Mailed, Pause: firstPause, Age: maxAge, more: make(chan struct{}, 1),
		list: map[key]*waiting{}, users: map[string]int{}, sending: map[string]int{}, services: map[string]*service{},
		tooMany: notice.Notice{Log: c.Log, Level: slog.LevelWarn, Text: "nobody is told of jobs: too many messages wait"},
		unsent:  notice.Notice{Log: c.Log, Level: slog.LevelWarn, Text: "message about a job is tried again"},
		givenUp: notice.Notice{Log: c.Log, Level: slog.LevelError, Text: "message about a job was given up"},
	}
	s.http = client((&net.Dialer{}).DialContext)
	s.out = client(func(ctx context.Context, network, addr string) (net.Conn, error) {
		return s.guard().Dial(ctx, network, addr)
	})
	err := st.All(state.KindNotice, func(r state.Record) error {
		w := &waiting{took: map[string]bool{}}
		if err := json.Unmarshal(r.Value, &w.moved); err != nil {
			return fmt.Errorf("message about job %d: %w", r.Job, err)
		}
		s.add(key{r.Job, r.Seq}, w)
		return nil
	})
	s.ring()
	return s, err
}

// Records are what is to be stored with changes, so that services are told of them.
func (s *Sender) Records(jobs []effects.Moved) (out []state.Record) {
	if len(jobs) == 0 {
		return nil
	}
	services := len(s.conf().Webhooks) > 0
	s.mu.Lock()
	room := maxWaiting - len(s.list)
	has := maps.Clone(s.users)
	s.mu.Unlock()
	for _, m := range jobs {
		if !services && !m.Told {
			continue
		}
		if has[m.User] >= room { // so nobody's jobs can take the places of all others'
			s.tooMany.Happened("job", m.Job, "user", m.User)
			continue
		}
		has[m.User]++
		room--
		out = append(out, state.Record{Kind: state.KindNotice, Job: m.Job, Seq: m.Version,
			Value: state.Encode(moved{Change: mail.Change{From: m.From, To: m.To, Percent: m.Percent}, AtMS: s.now().UnixMilli(), User: m.User, Told: m.Told})})
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
		maps.DeleteFunc(s.services, func(id string, _ *service) bool { return strings.HasPrefix(id, ownID(w.User, "")) })
	}
}

// Take begins to tell of what was stored. It never blocks.
func (s *Sender) Take(stored []state.Record) {
	s.mu.Lock()
	for _, r := range stored {
		w := &waiting{took: map[string]bool{}}
		if json.Unmarshal(r.Value, &w.moved) == nil { // always, as we wrote it
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
const lookEvery = time.Second / 5

// Run sends until ctx is done.
func (s *Sender) Run(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	slots := make(chan struct{}, maxSending)
	tick := time.NewTicker(lookEvery)
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

// due are the notices of which somebody may be told now, oldest jobs first, and marks
// them as being sent. A user whose jobs name many that do not answer waits for themself.
func (s *Sender) due() (list []key) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, w := range s.list {
		if !w.busy && !now.Before(w.until) {
			list = append(list, k)
		}
	}
	slices.SortFunc(list, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.version, b.version))
	})
	return slices.DeleteFunc(list, func(k key) bool {
		w := s.list[k]
		if w.Told && s.sending[w.User] >= maxOfUser {
			return true
		}
		if w.busy = true; w.Told {
			s.sending[w.User]++
		}
		return false
	})
}

// tell tells each who wants to know, and has not taken it, of one change.
func (s *Sender) tell(ctx context.Context, k key) {
	s.mu.Lock()
	w := s.list[k]
	took := maps.Clone(w.took)
	s.mu.Unlock()
	left, until := s.send(ctx, k, w.moved, took)
	if ctx.Err() != nil {
		return
	}
	var err error
	old := s.now().Sub(time.UnixMilli(w.AtMS)) > s.Age
	done := len(left) == 0 || old
	switch {
	case len(left) == 0:
		err = s.loop.Keep(ctx, state.Record{Kind: state.KindNotice, Job: k.job, Seq: k.version})
	case old:
		err = s.giveUp(ctx, k, left)
	}
	if err != nil {
		done, until = false, s.now().Add(lastPause) // who has taken it is not told again, but after a restart
	}
	s.mu.Lock()
	w.took, w.busy, w.left, w.until = took, false, left, until
	if w.Told {
		if s.sending[w.User]--; s.sending[w.User] == 0 {
			delete(s.sending, w.User)
		}
	}
	if done {
		s.drop(k, w)
	}
	s.mu.Unlock()
	s.ring() // of the same user, others may wait for this one
}

// send tells each of one change and notes in took who has taken it. It returns who
// has not, and when the first of these may be asked again.
func (s *Sender) send(ctx context.Context, k key, n moved, took map[string]bool) (left []api.Untold, until time.Time) {
	j, err := s.jobs.Find(fmt.Sprint(k.job))
	if err != nil {
		s.givenUp.Happened("job", k.job, "error", err) // no longer known
		return nil, until
	}
	event, _ := n.What(j)
	if event == "" {
		return nil, until
	}
	targets, err := s.targets(n, event, j)
	if err != nil {
		s.givenUp.Happened("job", k.job, "error", err) // to those whom its document names; services are told
	}
	for _, t := range targets {
		if took[t.id] {
			continue
		}
		again, tries, why := s.rests(t.id)
		if again.IsZero() {
			if err = t.send(ctx, fmt.Sprintf("%s.%d", j.Identity(), k.version)); err == nil {
				took[t.id] = true
			}
			again, tries, why = s.fared(t, err)
		}
		if took[t.id] {
			continue
		}
		left = append(left, api.Untold{Event: event, To: t.shown, Since: time.UnixMilli(n.AtMS).UTC(), Tries: tries, Error: why})
		if until.IsZero() || again.Before(until) {
			until = again
		}
	}
	return left, until
}

// rests says until when somebody is left alone who failed, how often in a row that was,
// and why; a time of zero: not.
func (s *Sender) rests(id string) (until time.Time, failures int, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sv := s.services[id]; sv != nil && s.now().Before(sv.until) {
		return sv.until, sv.failures, sv.why
	}
	return time.Time{}, 0, ""
}

// fared takes in how somebody took a message, and returns what rests does.
func (s *Sender) fared(t target, err error) (until time.Time, failures int, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sv := s.services[t.id]
	if err == nil {
		if delete(s.services, t.id); sv != nil { // others may have waited for it
			for _, w := range s.list {
				w.until = time.Time{}
			}
		}
		return time.Time{}, 0, ""
	}
	if sv == nil {
		sv = &service{}
		s.services[t.id] = sv
	}
	if !s.now().Before(sv.until) { // else another message has failed at the same time
		sv.until = s.now().Add(min(s.Pause<<min(sv.failures, 20), lastPause))
		sv.failures++
		sv.why = err.Error()
		s.unsent.Happened("to", t.shown, "error", detail(err), "failures", sv.failures)
	}
	return sv.until, sv.failures, sv.why
}

// Untold are the messages about a job that were tried, and that somebody has not taken.
func (s *Sender) Untold(n job.Number) (list []api.Untold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, w := range s.list {
		if k.job == n {
			list = append(list, w.left...)
		}
	}
	slices.SortFunc(list, func(a, b api.Untold) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.To, b.To)) })
	return list
}
