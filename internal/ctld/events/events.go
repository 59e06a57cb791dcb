package events

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/jobstore"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/ctld/wire"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

const (
	Patience   = 40 * time.Second // a client that takes nothing for so long is dropped; half of it is longer than from ping to ping
	maxWatched = 1000             // jobs that one stream names
	maxSaid    = 64 << 10         // bytes of events that are sent in one piece, but for the last of them

	// A stream tells of changes at once while little happens. Where they never end it
	// tells of them so often a second, of those between in one piece. Where many
	// streams are open, each tells more seldom, so that all of them write so often.
	tellsPerSecond = 10
	tellsAtOnce    = 20
	tellsOfAll     = 250
	tellsAtLeast   = 0.5

	// Lists that follow changes are read anew no more often than that, and where many are
	// open so that all of them are read so often a second.
	readEvery  = time.Second
	readsOfAll = 25
	readMost   = 20 * time.Second
)

type eventsInput struct {
	User    string `query:"user"`
	Project string `query:"project"`
	Job     string `query:"job" doc:"numbers or UUIDs, separated by commas"`
	Nodes   bool   `query:"nodes" doc:"changes of nodes, too"`
	Last    string `header:"Last-Event-ID" doc:"go on after this one"`
}

// Source tells what changes.
type Source struct {
	Loop     *loop.Loop
	Jobs     *jobstore.Reader
	Rights   *access.Rights
	Begin    func(user string) (end func(), err error) // counts a stream
	Patience time.Duration                             // with a client that takes nothing

	told  [2]told      // to those who may see a job, and to others
	open  atomic.Int64 // streams
	bells bells
}

// tells is how often a second each stream tells of changes that never end.
func (s *Source) tells() rate.Limit {
	return rate.Limit(min(max(tellsOfAll/max(float64(s.open.Load()), 1), tellsAtLeast), tellsPerSecond))
}

// ping says how often lists are to be read anew.
func (s *Source) ping() api.PingEvent {
	return api.PingEvent{EveryMS: min(max(time.Duration(s.open.Load())*time.Second/readsOfAll, readEvery), readMost).Milliseconds()}
}

// Stream streams changes, from now on or from where the client was.
func (s *Source) Stream(ctx context.Context, in *eventsInput) (func(context.Context, http.ResponseWriter) error, error) {
	numbers, err := s.numbers(in.Job)
	if err != nil {
		return nil, err
	}
	st := &eventStream{desk: s, id: access.Caller(ctx), user: in.User, project: in.Project, jobs: numbers, nodes: in.Nodes}
	if in.Last != "" {
		if st.pos, err = strconv.ParseUint(in.Last, 10, 64); err != nil {
			return nil, api.Errorf(api.CodeBadRequest, "Last-Event-ID %q is not the id of an event", in.Last).
				WithHint("leave it out to begin with what happens now")
		}
	}
	end, err := s.Begin(st.id.User)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, w http.ResponseWriter) error {
		defer end()
		s.open.Add(1)
		defer s.open.Add(-1)
		st.w, st.rc = w, http.NewResponseController(w)
		_ = st.run(ctx) // the client has gone, or does not read
		return nil
	}, nil
}

// numbers are the jobs that a list of ids names.
func (s *Source) numbers(list string) ([]job.Number, error) {
	if list == "" {
		return nil, nil
	}
	ids := strings.Split(list, ",")
	if len(ids) > maxWatched {
		return nil, api.Errorf(api.CodeBadRequest, "%d jobs are named, and one stream tells of %d at most", len(ids), maxWatched).
			WithHint("use the filters user or project")
	}
	var out []job.Number
	for _, id := range ids {
		j, err := s.Jobs.Find(id)
		if err != nil {
			return nil, err
		}
		out = append(out, cmp.Or(j.Number, j.Parent)) // of a task that is no job yet: its array
	}
	return out, nil
}

// eventStream is one client and what it wants to hear of.
type eventStream struct {
	desk          *Source
	id            access.Identity
	user, project string
	jobs          []job.Number
	nodes         bool
	pos           uint64 // the last id that it knows; 0: it begins now
	bell          *bell

	w    http.ResponseWriter
	rc   *http.ResponseController
	said *bytes.Buffer // and not sent yet; nil: nothing
	ends time.Time     // unless it is put off: a deadline for what is written
}

// run sends events until ctx is done or the client takes no more. What waits for
// a slow client is one connection's buffer, and nothing else waits for it.
func (e *eventStream) run(ctx context.Context) error {
	f := e.desk.Loop.Feed
	h := e.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	e.desk.bells.hang(e)
	defer e.desk.bells.take(e)
	if e.pos == 0 {
		e.pos = f.Position()
	}
	tells := rate.NewLimiter(tellsPerSecond, tellsAtOnce)
	ping := time.NewTicker(api.PingEvery)
	defer ping.Stop()
	err := e.say(api.EventPing, e.pos, e.desk.ping())
	for {
		changes, last, all, _ := f.After(e.desk.bells.hear(e))
		e.pos = last
		if !all {
			err = errors.Join(err, e.say(api.EventReset, last, api.ResetEvent{Message: "events were missed: read anew what you show"}))
		} else if len(changes) > 0 {
			err = errors.Join(err, e.sayChanges(changes))
		}
		said := e.said != nil
		if err = errors.Join(err, e.send()); err != nil {
			return err
		}
		if said { // what was of no interest costs nothing
			tells.SetLimit(e.desk.tells())
			if err = tells.Wait(ctx); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ping.C:
			err = e.say(api.EventPing, e.pos, e.desk.ping())
		case <-e.bell.rings:
		}
	}
}

func (e *eventStream) sayChanges(changes []loop.Update) error {
	v := e.desk.Loop.View()
	for _, c := range changes {
		if !e.concerns(c) {
			continue
		}
		var err error
		if c.Node != nil {
			err = e.say(api.EventNode, c.ID, api.NodeEvent{Name: c.Node.Name, State: c.Node.State, Reason: c.Node.Reason})
		} else {
			err = e.sayJob(v, &c)
		}
		if err == nil && e.said.Len() > maxSaid {
			err = e.send()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// concerns says whether this client wants to hear of a change.
func (e *eventStream) concerns(c loop.Update) bool {
	return c.Node != nil && e.nodes || c.Job != nil && e.wants(c.Job)
}

func (e *eventStream) wants(j *state.Job) bool {
	return (e.user == "" || e.user == j.Owner.User) && (e.project == "" || e.project == j.Owner.Project) &&
		(len(e.jobs) == 0 || slices.Contains(e.jobs, j.Number) || j.Parent > 0 && slices.Contains(e.jobs, j.Parent))
}

// sayJob tells of a job as this client may see it.
func (e *eventStream) sayJob(v *state.View, c *loop.Update) error {
	private, audience := e.desk.Rights.Private(e.id, c.Job.Owner), 0
	if private {
		audience = 1
	}
	text, err := e.desk.told[audience].text(c.ID, func() ([]byte, error) { return write(api.EventJob, c.ID, jobEvent(v, c, private)) })
	if err != nil {
		return err
	}
	e.saying().Write(text)
	return nil
}

func jobEvent(v *state.View, c *loop.Update, private bool) api.JobEvent {
	out := api.JobEvent{Job: wire.Job(v, c.Job, private), Version: c.Job.Version, Was: string(c.Was)}
	if private {
		return out
	}
	for _, raw := range c.Lines {
		if l, err := wire.Event(raw); err == nil { // it is our own
			out.Lines = append(out.Lines, l)
		}
	}
	return out
}

// say tells of something.
func (e *eventStream) say(kind string, id uint64, data any) error {
	text, err := write(kind, id, data)
	e.saying().Write(text)
	return err
}

// pieces are what streams have said in and sent: one that is silent holds none of them.
var pieces = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// saying is where this stream says what it sends next.
func (e *eventStream) saying() *bytes.Buffer {
	if e.said == nil {
		e.said = pieces.Get().(*bytes.Buffer)
	}
	return e.said
}

// write makes the text of an event.
func write(kind string, id uint64, data any) ([]byte, error) {
	text, err := json.Marshal(data)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "id: %d\nevent: %s\ndata: %s\n\n", id, kind, text), nil
}

// send writes what was said, in one piece. It fails when the client does not take it in
// time. The deadline for that is put off seldom, as it costs as much as a write, and always
// before it passes: over HTTP/2 one that passes ends a stream on which nothing happens.
func (e *eventStream) send() error {
	if e.said == nil {
		return nil
	}
	if now := time.Now(); e.ends.Sub(now) < e.desk.Patience/2 {
		e.ends = now.Add(e.desk.Patience)
		if err := e.rc.SetWriteDeadline(e.ends); err != nil {
			return err
		}
	}
	_, err := e.said.WriteTo(e.w)
	if err == nil && e.said.Cap() <= 2*maxSaid {
		pieces.Put(e.said) // it is empty
	}
	e.said = nil
	return errors.Join(err, e.rc.Flush())
}
