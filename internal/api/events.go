package api

import "time"

// PathEvents is the stream of what changes: GET, server-sent events. Query:
// user, project, job (ids, separated by commas), nodes=true. It begins with a
// ping. A client that comes back with the header Last-Event-ID gets what it
// has missed, or a reset.
const PathEvents = "/v1/events"

// The kinds of events, and what their data is.
const (
	EventJob   = "job"   // JobEvent: a job has changed
	EventNode  = "node"  // NodeEvent: a node has changed its state; only with nodes=true
	EventReset = "reset" // ResetEvent: events were missed: read anew what you show
	EventPing  = "ping"  // PingEvent: nothing, at the beginning and every PingEvery
)

// PingEvery is how often a stream of events says that it lives. A client that
// hears nothing for three times as long may take it for broken.
const PingEvery = 15 * time.Second

// JobEvent is a job after a change, as lists show it to the one who asks.
type JobEvent struct {
	Job
	Version uint64  `json:"version"`
	Was     string  `json:"was,omitempty"`   // its state before the change; empty: it is new
	Lines   []Event `json:"lines,omitempty"` // of its timeline, which came with the change; none if it is private
}

// NodeEvent is a node after a change of its state.
type NodeEvent struct {
	Name   string `json:"name"`
	State  string `json:"state"` // as Node has it; "gone" if it was dropped
	Reason string `json:"reason,omitempty"`
}

// ResetEvent says that the client must read anew what it shows: it was away
// for too long, or the controller has been started again.
type ResetEvent struct {
	Message string `json:"message"`
}

// PingEvent says that all is well. Its id is where the stream stands.
type PingEvent struct {
	EveryMS int64 `json:"everyMs,omitempty"` // lists that follow the changes are to be read anew no more often than that: the more of them there are, the more seldom
}
