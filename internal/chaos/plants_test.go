package chaos

import (
	"time"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/ctld/jobstore"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/ctld/site"
	"gbatch/internal/node"
	"gbatch/internal/state"
	"gbatch/sched"
)

// plant is a bug that is put in at the edges of what runs, so that it is seen whether it is found.
type plant struct {
	name string
	from uint64 // the seeds from this one of an hour with a fault every ten seconds find it; 0: those from 1, as below

	// Of the controller.
	unsynced     bool // its disk does not sync
	site         func(*site.Config)
	readings     func(loop.Readings) loop.Readings
	load         func(*control.Controller) func(state.Record) error
	impatient    sched.Time // for so long all nodes have been silent at a start
	oldViews     func(*process) *jobstore.Reader
	dropsCancels bool
	answersEarly bool

	// Of several controllers.
	controllers int           // so many; 0: one
	early       bool          // what one member has on its disk is agreed on
	anyVote     bool          // a member votes for one that lacks what it has
	anyTerm     bool          // a member follows one of an earlier term
	stale       bool          // reads ask no majority
	shortLog    bool          // a restart forgets the end of a member's log
	ownClock    bool          // who leads next counts by its own clock
	staleCopy   bool          // the copies that are sent are older than is said
	wiped       bool          // a controller that lost its disk goes on as the same
	followers   bool          // those that follow answer reads, too
	readLease   time.Duration // for so long after the last contact with a majority none is asked

	// Of the wire.
	report func(*api.SyncRequest)
	taken  func(*api.SyncRequest) // as the controller takes it
	answer func(req *api.SyncRequest, resp *api.SyncResponse, took time.Duration)

	// Of nodes and clients.
	status                       func(*machine, *rank, *node.RankStatus)
	wallLease, noLease, noShims  bool
	forgetsRunning, ignoresStops bool
	leavesSync                   func(path string) bool // of a node's file or directory
	newKeys                      bool
	wordApart                    bool // what the controller said is on no disk of which images are put back
}
