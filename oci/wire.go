package oci

import (
	"net"

	"gbatch/cgroups"
	"gbatch/oci/annex"
	"gbatch/oci/door"
	"gbatch/oci/failure"
	"gbatch/oci/result"
)

// The shim and its clients exchange JSON objects, one per line, over a unix
// stream socket. A client sends requests and the shim answers each by its
// sequence number; a message with number 0 tells of a new phase, and the first
// one on each connection tells the present one. Either side ignores fields
// that it does not know, so a new daemon can talk to the shims of an old one.
const protocolVersion = 1

type request struct {
	Version int             `json:"v"`
	Seq     uint64          `json:"seq"`
	Op      string          `json:"op"`
	Signal  int             `json:"signal,omitempty"`
	Limits  *cgroups.Limits `json:"limits,omitempty"`
	Exec    *ExecRequest    `json:"exec,omitempty"`
	Annex   *annex.Request  `json:"annex,omitempty"`
}

// The operations. opExec comes alone, on a connection of its own; opAnnex with a file.
const (
	opSignal = "signal" // to whoever handles it, see package signals
	opStop   = "stop"   // as signal, and the container counts as stopped
	opKill   = "kill"
	opPause  = "pause"
	opResume = "resume"
	opUpdate = "update"
	opExec   = "exec"
	opAnnex  = "annex"
	opAttach = "attach" // answered with the terminal, or with nothing if there is none
)

type reply struct {
	Version int    `json:"v"`
	Seq     uint64 `json:"seq"`
	Phase   Phase  `json:"phase,omitempty"`
	PID     int    `json:"pid,omitempty"`  // of the container's or command's first process
	Part    string `json:"part,omitempty"` // which runs, where that is not the last; see Part
	Error   string `json:"error,omitempty"`

	Exit *result.Exit `json:"exit,omitempty"` // with PhaseExited, of a guest: as it is recorded

	Exited bool `json:"exited,omitempty"` // a command ended with Code
	Code   int  `json:"code,omitempty"`

	Kind failure.Kind `json:"kind,omitempty"` // with Error: a Failure
}

// Phase is how far a container has come.
type Phase string

// The phases, in their order.
const (
	PhaseStarting Phase = "starting" // until the user's code runs
	PhaseRunning  Phase = "running"
	PhaseExited   Phase = "exited" // the result is recorded
)

// dialShim connects to the shim of the container in dir.
func dialShim(dir string) (*net.UnixConn, error) { return door.Dial(dir) }
