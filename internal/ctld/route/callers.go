package route

import (
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/fair"
)

// Caps are what one user may have open, and ask in a second. 0: no bound.
type Caps struct {
	Requests, Streams int   // open at once; a stream is no request
	Changes, Reads    int64 // in a second, and ten times as many in ten
}

// A read that looks at much counts for so many.
const dearRead = 10

// callers counts what each user has open and how often they ask. The zero value is
// ready.
type callers struct {
	mu             sync.Mutex
	open           map[string]*opened
	changes, reads fair.Rates
}

type opened struct{ requests, streams int }

// enter takes a request in, or says what there is too much of and how long to wait.
// Nodes, and those who could raise the bounds as well, are counted but not bound.
func (c *callers) enter(id access.Identity, method string, kind answerKind, caps Caps) (leave func(), wait time.Duration, e *api.Error) {
	if id.Role == access.RoleNode || id.Operator() {
		caps = Caps{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.open[id.User]
	if o == nil {
		o = &opened{}
	}
	n, most, what, key := &o.requests, caps.Requests, "requests", "requests"
	if kind == endlessAnswer {
		n, most, what, key = &o.streams, caps.Streams, "logs, shells, forwarded ports and streams of events", "streams"
	}
	if most > 0 && *n >= most {
		return nil, time.Second, api.Errorf(api.CodeTooMany, "%s has %d of at most %d %s open (limits.perUser.%s)", id.User, *n, most, what, key).
			WithHint("end some; one stream of events can tell of many jobs")
	}
	rate, perSecond, cost, key := &c.changes, caps.Changes, int64(1), "changesPerSecond"
	if method == http.MethodGet {
		rate, perSecond, key = &c.reads, caps.Reads, "readsPerSecond"
		if kind != shortAnswer {
			cost = dearRead
		}
	}
	if wait = rate.Take(time.Now(), id.User, perSecond, cost); wait > 0 {
		return nil, wait, tooOften(id, perSecond, key)
	}
	*n++
	if c.open == nil {
		c.open = map[string]*opened{}
	}
	c.open[id.User] = o
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if *n--; *o == (opened{}) {
			delete(c.open, id.User)
		}
	}, 0, nil
}

// Enter counts what no route of the table serves as a request of a user's, or as one of
// what they have open for as long as they like.
func (g *Guard) Enter(id access.Identity, method string, endless bool) (leave func(), e *api.Error) {
	kind := shortAnswer
	if endless {
		kind = endlessAnswer
	}
	leave, _, e = g.callers.enter(id, method, kind, g.Caps(id.User))
	return leave, e
}

func tooOften(id access.Identity, perSecond int64, key string) *api.Error {
	return api.Errorf(api.CodeTooMany, "%s asks more often than %d times a second (limits.perUser.%s)", id.User, perSecond, key).
		WithHint("try again in a moment; a stream of events, or gqueue wait, tells of changes without asking again")
}

// another counts one more change that a request makes, as if it had come alone.
func (c *callers) another(id access.Identity, caps Caps) *api.Error {
	if id.Operator() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes.Take(time.Now(), id.User, caps.Changes, 1) > 0 {
		return tooOften(id, caps.Changes, "changesPerSecond")
	}
	return nil
}

// seconds is a wait as Retry-After has it.
func seconds(d time.Duration) string { return fmt.Sprint(max(int(math.Ceil(d.Seconds())), 1)) }
