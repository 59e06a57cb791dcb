// Package wire is what the shim of a container and its clients say to each other, and the client of a command
// that runs in one.
package wire

import (
	"encoding/json"
	"fmt"

	"gbatch/cgroups"
	"gbatch/oci/annex"
	"gbatch/oci/failure"
	"gbatch/oci/result"
)

// Version is that of what they say. The shim and its clients exchange JSON objects, one per line, over a unix
// stream socket. A client sends requests and the shim answers each by its
// sequence number; a message with number 0 tells of a new phase, and the first
// one on each connection tells the present one. Either side ignores fields
// that it does not know, so a new daemon can talk to the shims of an old one.
const Version = 1

// Request is one of a client.
type Request struct {
	Version int             `json:"v"`
	Seq     uint64          `json:"seq"`
	Op      string          `json:"op"`
	Signal  int             `json:"signal,omitempty"`
	Limits  *cgroups.Limits `json:"limits,omitempty"`
	Exec    *ExecRequest    `json:"exec,omitempty"`
	Annex   *annex.Request  `json:"annex,omitempty"`
}

// The operations. OpExec comes alone, on a connection of its own; OpAnnex with a file.
const (
	OpSignal = "signal" // to whoever handles it, see package signals
	OpStop   = "stop"   // as signal, and the container counts as stopped
	OpKill   = "kill"
	OpPause  = "pause"
	OpResume = "resume"
	OpUpdate = "update"
	OpBegin  = "begin" // of a container that waits for the word
	OpExec   = "exec"
	OpAnnex  = "annex"
	OpAttach = "attach" // answered with the terminal, or with nothing if there is none
)

// Reply is a word of the shim.
type Reply struct {
	Version int    `json:"v"`
	Seq     uint64 `json:"seq"`
	Phase   Phase  `json:"phase,omitempty"`
	PID     int    `json:"pid,omitempty"`  // of the container's or command's first process
	Part    string `json:"part,omitempty"` // which runs, where that is not the last; see Part
	Error   string `json:"error,omitempty"`

	Exit *result.Exit `json:"exit,omitempty"` // with PhaseExited, of a guest, once: as it is recorded
	Free bool         `json:"free,omitempty"` // with Exit: another program may run in the container

	Exited bool `json:"exited,omitempty"` // a command ended with Code
	Code   int  `json:"code,omitempty"`

	Kind failure.Kind `json:"kind,omitempty"` // with Error: a Failure
}

// Phase is how far a container has come.
type Phase string

// The phases, in their order.
const (
	PhaseStarting Phase = "starting" // until the user's code runs
	PhaseMade     Phase = "made"     // the program waits for the word to begin
	PhaseRunning  Phase = "running"
	PhaseExited   Phase = "exited" // the result is recorded
)

// Parse reads a word of the shim.
func Parse(line []byte) (Reply, error) {
	var r Reply
	if err := json.Unmarshal(line, &r); err != nil {
		return Reply{}, fmt.Errorf("read the shim's answer: %w", err)
	}
	return r, nil
}
