// Package api is the wire contract, version 1: the JSON bodies that clients,
// the controller and the nodes exchange, their paths and error codes.
//
// Fields are only ever added. Unknown fields are ignored between daemons;
// job documents inside are checked strictly by internal/job. The package
// holds no behaviour and owns nothing.
package api

// Paths. Those with a {name} or {id} are patterns.
const (
	PathJobs      = "/v1/jobs"             // POST submit, GET list
	PathJobsMany  = "/v1/submissions"      // POST submit many
	PathJob       = "/v1/jobs/{id}"        // GET detail; ?wait=SECONDS&version=V long-polls for a change. PATCH its resources
	PathJobLog    = "/v1/jobs/{id}/log"    // GET bytes; ?offset=&follow=&tail=&rank=&attempt=
	PathJobAction = "/v1/actions/{action}" // POST cancel, hold, release, pause, resume
	// PathFormerAction is where PathJobAction was: older clients ask there.
	PathFormerAction = "/v1/jobs/actions/{action}"
	PathSecrets      = "/v1/jobs/{id}/secrets" // PATCH
	PathExplain      = "/v1/jobs/{id}/explain" // GET
	PathCurves       = "/v1/jobs/{id}/curves"  // GET; ?rank=&attempt=
	PathConvert      = "/v1/convert"           // POST
	PathCluster      = "/v1/cluster"           // GET nodes and GPUs
	PathStatus       = "/v1/status"            // GET version and counts
	PathNodeSync     = "/v1/nodes/{name}/sync" // POST, nodes only
	PathStream       = "/v1/streams/{id}"      // nodes only: POST the bytes a client asked for, GET a two-way stream
)

// HeaderIdempotencyKey makes a submission safe to repeat: the same key of the
// same user gives the same job.
const HeaderIdempotencyKey = "Idempotency-Key"

// Headers of a stream that a node dials back with (PathStream) and of the
// answer to PathJobLog.
const (
	HeaderWithin      = "Gbatch-Within"       // from a node: the request is of a job that runs there, as NODE RANK UUID
	HeaderController  = "Gbatch-Controller"   // of an answer of one of several controllers: its name
	HeaderOffset      = "Gbatch-Offset"       // where in the log the first byte stands
	HeaderStreamError = "Gbatch-Stream-Error" // the node cannot: why, in a sentence; no body
	HeaderLogCopy     = "Gbatch-Log-Copy"     // the log is the controller's copy: when its last byte came, in milliseconds since 1970
	HeaderRows        = "Gbatch-Rows"         // how many jobs the list in the answer has
	HeaderLogComplete = "Gbatch-Log-Complete" // that copy is all of the log
)

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
