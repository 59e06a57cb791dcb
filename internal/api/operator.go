package api

import "time"

// Paths for operators.
const (
	PathDrain        = "/v1/nodes/{name}/drain"  // POST
	PathResume       = "/v1/nodes/{name}/resume" // POST
	PathNode         = "/v1/nodes/{name}"        // GET one and its past; DELETE: one that is gone for good
	PathReservations = "/v1/reservations"        // GET, POST
	PathReservation  = "/v1/reservations/{name}" // DELETE
)

// DrainRequest is the body of PathDrain and PathResume.
type DrainRequest struct {
	GPU    string `json:"gpu,omitempty"`    // index or UUID; empty: the whole node
	Reason string `json:"reason,omitempty"` // needed to drain

	Evict   bool  `json:"evict,omitempty"`   // to drain: jobs that run there are halted, and ended where they cannot go on
	EvictIn int64 `json:"evictIn,omitempty"` // with evict: in so many seconds; 0: now
	Reboot  bool  `json:"reboot,omitempty"`  // to drain: the machine is rebooted when it is empty, and takes jobs again when its checks have passed; to resume: only that order is taken back
}

// DrainResult is the answer of PathDrain.
type DrainResult struct {
	Evicted []EvictedJob `json:"evicted"` // now
	Jobs    int          `json:"jobs"`    // that are on the node still; of a drained GPU 0
}

// EvictedJob is a job that has to leave a node.
type EvictedJob struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	User string `json:"user"`
	What string `json:"what"` // what becomes of it, as "is being halted; a new job will continue it"
}

// Reservation keeps nodes, or some of their GPUs, for some jobs or for nobody,
// during a span of time. Jobs that name its UUID in reservationIds, or are of its
// projects or users, may use it, and may run elsewhere too.
type Reservation struct {
	Name        string    `json:"name"`
	UUID        string    `json:"uuid,omitempty"` // given when it is made
	Start       time.Time `json:"start"`
	End         time.Time `json:"end"`
	Nodes       []string  `json:"nodes,omitempty"`       // these nodes
	Partition   string    `json:"partition,omitempty"`   // in requests: instead of nodes all that are in it now, or with count some of these
	Count       int       `json:"count,omitempty"`       // or so many, chosen when it is made
	GPUs        []string  `json:"gpus,omitempty"`        // only these GPUs of the node: UUIDs; in a request indexes too
	GPUsPerNode int       `json:"gpusPerNode,omitempty"` // or so many of each node, chosen when it is made
	GPUModels   []string  `json:"gpuModels,omitempty"`
	Cluster     int       `json:"cluster,omitempty"`
	Projects    []string  `json:"projects,omitempty"`
	Users       []string  `json:"users,omitempty"`
	Others      bool      `json:"others,omitempty"`      // also for projects or users that the caller is not told of
	Maintenance bool      `json:"maintenance,omitempty"` // nobody may use it
	Reason      string    `json:"reason,omitempty"`

	Every *Recurrence `json:"every,omitempty"` // it comes again; start and end are those of the time that is, or comes next
}

// Recurrence is when a reservation comes again, by the clock on the wall of a zone:
// from the start of the request on, each time for so long.
type Recurrence struct {
	Schedule string    `json:"schedule"`           // when it begins: minute, hour, day of the month, month, day of the week, as in crontab
	Zone     string    `json:"zone,omitempty"`     // as Europe/Brussels; empty: UTC
	Until    time.Time `json:"until,omitzero"`     // no time begins at this moment or later
	Upcoming []Span    `json:"upcoming,omitempty"` // in answers: the times after that, three at most
}

// Span is a time from its start until before its end.
type Span struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
}

// ReservationList is the answer of GET PathReservations.
type ReservationList struct {
	Reservations []Reservation `json:"reservations"`
}

// PathDiag is how the controller fares. GET, operators only.
const PathDiag = "/v1/diag"

// Diagnosis is its answer: what was measured since the controller's start, and
// what is so now.
type Diagnosis struct {
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Now     time.Time `json:"now"`

	Turns     Timing  `json:"turns"`     // of the loop: from taking requests to their records being durable
	Commits   Timing  `json:"commits"`   // of the store, synced
	Rounds    Timing  `json:"rounds"`    // of the scheduler
	Evaluated float64 `json:"evaluated"` // jobs that a round looks at, on average
	Truncated uint64  `json:"truncated"` // rounds that ended before they had looked at all

	Inbox     int    `json:"inbox"`     // requests that wait for the loop
	InboxSize int    `json:"inboxSize"` // and as many as may
	Records   uint64 `json:"records"`   // made durable
	Streams   int    `json:"streams"`   // logs, shells and streams of events that are open

	Waiting    int    `json:"waiting"` // jobs, in the last round
	Running    int    `json:"running"`
	Shapes     int    `json:"shapes"` // different ones among those that wait
	Starts     uint64 `json:"starts"`
	Backfilled uint64 `json:"backfilled"` // of these, past a job with a reservation
	Preempted  uint64 `json:"preempted"`
	Estimates  Timing `json:"estimates"` // how far starts were from the first that was promised

	DiskFree    uint64 `json:"diskFreeBytes"`
	DiskReserve uint64 `json:"diskReserveBytes"` // no jobs are taken below it
	StoreBytes  uint64 `json:"storeBytes"`
	HeapBytes   uint64 `json:"heapBytes"`
	Goroutines  int    `json:"goroutines"`

	Routes []RouteUse `json:"routes"` // the most used first
}

// Timing is a distribution of lengths, in milliseconds. The quantiles are
// estimates from buckets.
type Timing struct {
	Count  uint64  `json:"count"`
	MeanMS float64 `json:"meanMs"`
	P50MS  float64 `json:"p50Ms"`
	P99MS  float64 `json:"p99Ms"`
}

// RouteUse is how much a route of the API was used. The timing of those that
// wait for a change holds the wait.
type RouteUse struct {
	Route   string `json:"route"`
	Refused uint64 `json:"refused,omitempty"` // answered 4xx
	Failed  uint64 `json:"failed,omitempty"`  // 5xx
	Timing
}
