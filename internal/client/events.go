package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tmaxmax/go-sse"

	"gbatch/internal/api"
)

// EventFilter selects events; what is empty selects all of jobs. After is the
// id of the last event that the caller knows, 0 to begin with what happens now.
type EventFilter struct {
	User    string
	Project string
	Jobs    []string // numbers, UUIDs, or the beginning of a UUID
	Nodes   bool     // changes of nodes, too
	After   uint64
}

func (f EventFilter) query() query {
	return query{}.text("user", f.User).text("project", f.Project).text("job", strings.Join(f.Jobs, ",")).flag("nodes", f.Nodes)
}

// Event is one event. Job and Node are set by its kind, one of those of package
// api; kinds that are not known there come with neither.
type Event struct {
	ID   uint64
	Kind string
	Job  *api.JobEvent
	Node *api.NodeEvent
}

// maxEvent bounds what one event may hold, in bytes.
const maxEvent = 1 << 20

var errSilent = fmt.Errorf("nothing was heard for %v", 3*api.PingEvery)

// Events yields what happens, a ping first. It ends with an error, unless the
// caller breaks off: *Unreachable when the connection does or stays silent.
// Going on after the last id, in a new call, misses nothing or says so by a
// reset.
func (c *Client) Events(ctx context.Context, f EventFilter) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := c.open(); err != nil {
			yield(Event{}, err)
			return
		}
		heard, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		silence := time.AfterFunc(3*api.PingEvery, func() { stop(errSilent) })
		defer silence.Stop()
		r := request{method: http.MethodGet, path: api.PathEvents, query: f.query(), header: map[string]string{"Accept": "text/event-stream"}}
		if f.After > 0 {
			r.header["Last-Event-ID"] = strconv.FormatUint(f.After, 10)
		}
		resp, err := c.send(heard, r, nil)
		if err != nil {
			yield(Event{}, c.peer.silent(heard, err))
			return
		}
		defer resp.Body.Close()
		for raw, err := range sse.Read(&wholeEvents{body: resp.Body}, &sse.ReadConfig{MaxEventSize: maxEvent}) {
			silence.Reset(3 * api.PingEvery)
			ev := Event{Kind: raw.Type}
			if err == nil {
				err = ev.fill(raw)
			}
			if err != nil {
				yield(Event{}, c.peer.silent(heard, err))
				return
			}
			if !yield(ev, nil) {
				return
			}
		}
		yield(Event{}, c.broken(ctx, errors.New("it has ended the stream of events")))
	}
}

// silent tells a connection from which nothing came apart from a caller who gave up.
func (e endpoint) silent(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errSilent) {
		return &Unreachable{Address: e.String(), Err: cause}
	}
	return err
}

func (ev *Event) fill(raw sse.Event) (err error) {
	if raw.LastEventID != "" {
		if ev.ID, err = strconv.ParseUint(raw.LastEventID, 10, 64); err != nil {
			return fmt.Errorf("read the id of an event: %w", err)
		}
	}
	switch raw.Type {
	case api.EventJob:
		ev.Job = new(api.JobEvent)
		err = json.Unmarshal([]byte(raw.Data), ev.Job)
	case api.EventNode:
		ev.Node = new(api.NodeEvent)
		err = json.Unmarshal([]byte(raw.Data), ev.Node)
	}
	if err != nil {
		return fmt.Errorf("decode an event: %w", err)
	}
	return nil
}

// wholeEvents passes on what belongs to events that came whole. One that was cut is told
// again by the controller that is asked next; the parser would take it for whole where the
// cut is behind a line, and for an error that is not the connection's where it is in one.
type wholeEvents struct {
	body  io.Reader
	held  []byte // read, and not passed on yet
	ready int    // of held: up to the end of an event
	err   error  // how the body ended
}

func (w *wholeEvents) Read(p []byte) (int, error) {
	for w.ready == 0 {
		if w.err != nil {
			return 0, w.err
		}
		if len(w.held) > maxEvent {
			return 0, bufio.ErrTooLong
		}
		w.held = slices.Grow(w.held, bufio.MaxScanTokenSize)
		var n int
		n, w.err = w.body.Read(w.held[len(w.held):cap(w.held)])
		w.held = w.held[:len(w.held)+n]
		if i := bytes.LastIndex(w.held, []byte("\n\n")); i >= 0 {
			w.ready = i + 2
		}
	}
	n := copy(p, w.held[:w.ready])
	w.held, w.ready = slices.Delete(w.held, 0, n), w.ready-n
	return n, nil
}
