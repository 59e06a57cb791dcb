// Package api is the wire contract, version 1: the JSON bodies that clients,
// the controller and the nodes exchange, their paths and error codes.
//
// Fields are only ever added. Unknown fields are ignored between daemons;
// job documents inside are checked strictly by internal/job. The package
// holds no behaviour and owns nothing.
package api

import (
	"fmt"
	"strings"
)

// Paths. Those with a {name} or {id} are patterns.
const (
	PathJobs      = "/v1/jobs"                  // POST submit, GET list
	PathJob       = "/v1/jobs/{id}"             // GET detail; ?wait=SECONDS&version=V long-polls for a change. PATCH its resources
	PathJobLog    = "/v1/jobs/{id}/log"         // GET bytes; ?offset=&follow=&tail=&rank=
	PathJobAction = "/v1/jobs/actions/{action}" // POST cancel, hold, release, pause, resume
	PathSecrets   = "/v1/jobs/{id}/secrets"     // PATCH
	PathExplain   = "/v1/jobs/{id}/explain"     // GET
	PathCluster   = "/v1/cluster"               // GET nodes and GPUs
	PathStatus    = "/v1/status"                // GET version and counts
	PathNodeSync  = "/v1/nodes/{name}/sync"     // POST, nodes only
	PathStream    = "/v1/streams/{id}"          // nodes only: POST the bytes a client asked for, GET a two-way stream
)

// HeaderIdempotencyKey makes a submission safe to repeat: the same key of the
// same user gives the same job.
const HeaderIdempotencyKey = "Idempotency-Key"

// Headers of a stream that a node dials back with (PathStream) and of the
// answer to PathJobLog.
const (
	HeaderOffset      = "Gbatch-Offset"       // where in the log the first byte stands
	HeaderStreamError = "Gbatch-Stream-Error" // the node cannot: why, in a sentence; no body
)

// Error is what every request that fails is answered with.
type Error struct {
	Status   int       `json:"status"` // the HTTP status again
	Code     string    `json:"code"`
	Message  string    `json:"message"`
	Hint     string    `json:"hint,omitempty"` // what to do next
	Problems []Problem `json:"problems,omitempty"`
}

// Problem is one fault of a job document.
type Problem struct {
	Path    string `json:"path"` // JSON path, as request.resources.gpus
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// The error codes.
const (
	CodeInvalidJob    = "invalid_job"   // 422: Problems says what
	CodeUnsatisfiable = "unsatisfiable" // 422: no node can ever hold it
	CodeBadRequest    = "bad_request"   // 400
	CodeUnauthorized  = "unauthorized"  // 401: who are you
	CodeDenied        = "denied"        // 403: not yours
	CodeNotFound      = "not_found"     // 404
	CodeConflict      = "conflict"      // 409
	CodeOverLimit     = "over_limit"    // 409: the queue is full, or what a user, project or QOS may have
	CodeTooLarge      = "too_large"     // 413
	CodeTooMany       = "too_many"      // 429: of connections or requests that are open, or in a second; try again later
	CodeUnavailable   = "unavailable"   // 503: try again later
	CodeStorageFull   = "storage_full"  // 507: nothing was recorded
	CodeInternal      = "internal"      // 500: the controller's log has more
)

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Message)
	for _, p := range e.Problems {
		fmt.Fprintf(&b, "\n  %s: %s", p.Path, p.Message)
		if p.Hint != "" {
			fmt.Fprintf(&b, " (%s)", p.Hint)
		}
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, "\n%s", e.Hint)
	}
	return b.String()
}

// GetStatus makes Error usable as the HTTP layer's error.
func (e *Error) GetStatus() int { return e.Status }

// Note tells of something in a document that was understood in a way worth
// saying.
type Note struct {
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
}

// Allocation is what one rank was given on one node.
type Allocation struct {
	Node     string     `json:"node"`
	GPUs     []GPUShare `json:"gpus,omitempty"`
	CPUs     int        `json:"cpus"`
	MemBytes int64      `json:"memBytes"` // memory limit: request and tmpfs together
}

// GPUShare is a GPU, or a share of one, by UUID.
type GPUShare struct {
	UUID  string `json:"uuid"`
	Milli int64  `json:"milli"` // 1000 is the whole GPU
}
