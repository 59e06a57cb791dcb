package api

import "time"

// Paths for operators.
const (
	PathDrain        = "/v1/nodes/{name}/drain"  // POST
	PathResume       = "/v1/nodes/{name}/resume" // POST
	PathNode         = "/v1/nodes/{name}"        // DELETE: one that is gone for good
	PathReservations = "/v1/reservations"        // GET, POST
	PathReservation  = "/v1/reservations/{name}" // DELETE
)

// DrainRequest is the body of PathDrain and PathResume.
type DrainRequest struct {
	GPU    string `json:"gpu,omitempty"`    // index or UUID; empty: the whole node
	Reason string `json:"reason,omitempty"` // needed to drain
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
}

// ReservationList is the answer of GET PathReservations.
type ReservationList struct {
	Reservations []Reservation `json:"reservations"`
}
