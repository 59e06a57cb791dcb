package api

import "time"

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
// wait for news holds the wait.
type RouteUse struct {
	Route   string `json:"route"`
	Refused uint64 `json:"refused,omitempty"` // answered 4xx
	Failed  uint64 `json:"failed,omitempty"`  // 5xx
	Timing
}
