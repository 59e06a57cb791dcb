package api

import (
	"time"

	"gbatch/internal/job"
)

// PathNodeLogs is where a node sends what its ranks write, for the controller to keep.
const PathNodeLogs = "/v1/nodes/{name}/logs" // POST, that node only

// LogPlace says where a rank's log is kept beside its node.
type LogPlace struct {
	Controller bool `json:"controller,omitempty"` // sent to PathNodeLogs
}

// LogPieces is the body of PathNodeLogs: some output of some ranks. It is safe to
// repeat.
type LogPieces struct {
	Pieces []LogPiece `json:"pieces"`
}

// Bounds of LogPieces.
const (
	MaxLogPieces = 512       // in one request
	MaxLogPiece  = 256 << 10 // bytes of output in one piece
)

// LogPiece is some output of one rank.
type LogPiece struct {
	Rank   job.RankID `json:"rank"`
	UUID   string     `json:"uuid"` // of its job
	Offset int64      `json:"offset"`
	Lost   int64      `json:"lost,omitempty"` // bytes just before Offset that the node does not have any more
	Data   []byte     `json:"data,omitempty"` // compressed by deflate
	End    bool       `json:"end,omitempty"`  // no more will come after Data
}

// LogsTaken answers each piece in its order.
type LogsTaken struct {
	Pieces []LogTaken `json:"pieces"`
}

// LogTaken is what became of a piece.
type LogTaken struct {
	Offset  int64  `json:"offset"`            // where the next piece begins
	Done    bool   `json:"done,omitempty"`    // all of the log is kept, and durable
	Later   bool   `json:"later,omitempty"`   // it was not taken, and may be sent again after a while
	Refused string `json:"refused,omitempty"` // nothing of this log is taken: why
}

// LogState is how far the controller's copies of the logs of an attempt go.
type LogState struct {
	Ranks    int       `json:"ranks"`              // that have a copy
	Bytes    int64     `json:"bytes"`              // of them together, on disk
	Until    time.Time `json:"until"`              // when the last byte came of the one that is furthest behind
	Complete bool      `json:"complete,omitempty"` // no more will come
	Archived bool      `json:"archived,omitempty"` // they are in the site's archive too
}
