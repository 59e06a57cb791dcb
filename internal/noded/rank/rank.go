package rank

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/account"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/contact"
	"gbatch/internal/noded/cores"
	"gbatch/internal/noded/data"
	"gbatch/internal/noded/devices"
	"gbatch/internal/noded/disk"
	"gbatch/internal/noded/exporter"
	"gbatch/internal/noded/hooks"
	"gbatch/internal/noded/identity"
	"gbatch/internal/noded/images"
	"gbatch/internal/noded/launches"
	"gbatch/internal/noded/network"
	"gbatch/internal/noded/record"
	"gbatch/internal/noded/storage"
	"gbatch/internal/noded/turn"
	"gbatch/oci"
	"gbatch/oci/image/share"
	"gbatch/oci/lease"
	"gbatch/oci/runtimes"
)

// Node is all that ranks see of the node: its parts, each for a purpose of its
// own. One serves all ranks and does not change; which part a step of the start
// may touch is said in the table of steps.
type Node struct {
	Config                  *config.Config
	Host                    *identity.Host
	Instance, Boot, Version string
	Log                     *slog.Logger
	LeaseFile               string // for the shims
	Programs                string // directory of those for containers that start tasks; empty: there is none

	Accounts *account.Accounts
	AppArmor string                      // the profile of containers; empty: none
	NoMaps   error                       // why containers have the node's ids; nil: they have their users'
	Runtimes map[string]runtimes.Runtime // that jobs may ask for
	Images   *images.Holds
	Peers    func(*api.ImagePeers) []share.Peer // other nodes that may have layers
	Data     *data.Data
	Disk     *disk.Disk
	Storage  *storage.Roots
	Cores    *cores.Map
	Devices  devices.Devices
	Network  *network.Network
	Shims    *oci.Pool
	Homes    *Homes // nil: each rank has a container of its own
	Past     *record.Past
	Slots    chan struct{} // one for each container that may be starting
	Counters *exporter.Counters
	Hooks    *hooks.Hooks
	Health   Health

	Leaving  func() bool                                      // a rank that nobody wants any more has not ended yet
	Launches func(id job.RankID, of string) launches.Recorder // has steps of batch scripts recorded
	// Login is how a rank's job is known to the registry of its image; nil: it has no login.
	Login func(ctx context.Context, id job.RankID, of string) (*api.Credential, error)

	Within func(id job.RankID, of string) (http.Handler, error) // asks the controller as the rank's job

	Tell    func(within time.Duration) // asks for a sync
	Changed func()                     // a rank began or ended
	Reached func(point string)         // marks a point between two steps, where tests kill the daemon
}

// Health is told what keeps the node from taking jobs.
type Health interface {
	// Leftover notes that what a rank had could not be removed; nil takes it back.
	Leftover(id job.RankID, err error)
	// DiskError has the state directory looked at if the error may be its fault.
	DiskError(err error)
	// Fit says why nothing new may begin on the machine; empty: it may.
	Fit() string
}

// Rank is one container's life on this node, from its order to the removal of
// its last trace. One goroutine takes it through that life, by Live or Resume;
// the other methods may be called from anywhere.
type Rank struct {
	recipe
	log *slog.Logger

	// Only for the rank's own goroutine.
	slot      slot
	written   []oci.File // into its root file system
	container *oci.Container
	meter     *meter     // nil: nothing was measured yet
	past      *node.Exit // of a program that ended while no daemon looked, and is not concluded
	ordered   time.Time  // zero: by an earlier daemon

	shelter shelter
	turn    *turn.Turn
	before  *Rank // that it follows; nil: none, or that is past
	ahead   bool  // it is made before its turn

	unrecorded error // why an earlier daemon's record cannot be read; nil: it was, or there was no earlier one
}

// order is what the controller ordered when the rank was accepted, and where it
// lies on this node.
type order struct {
	id           job.RankID
	at           job.RankID // by whose name the host has the container: of a guest its owner's
	guest        bool       // it is in the journal of that one's container, and has a directory only where it needs one
	dir          string
	rec          *record.Record // as it was written last; nil: it was not, or cannot be read
	api.RunOrder                // never with credentials
}

// New makes a rank that was just ordered.
func New(n *Node, id job.RankID, o api.RunOrder) *Rank {
	r := newRank(n, id, o)
	r.ordered, r.state.waits = time.Now(), true
	if o.QueuedMS > 0 {
		r.image.since = r.ordered.Add(-time.Duration(o.QueuedMS) * time.Millisecond)
	}
	return r
}

func newRank(n *Node, id job.RankID, o api.RunOrder) *Rank {
	log := n.Log.With("rank", id.String(), "job", uint64(id.Job))
	dir := n.Dir(id)
	r := &Rank{log: log, turn: turn.New(), slot: slot{places: n.Slots}, recipe: recipe{
		node: n, state: newState(id, log, n.Tell), image: pulled{login: o.Registry, peers: n.Peers(o.ImagePeers)},
		binds: binds{dir: filepath.Join(dir, "mnt")}, secrets: secretFiles{dir: (&order{dir: dir}).secretsDir()},
	}}
	r.state.status.UUID = o.UUID
	o.Registry, o.ImagePeers, o.QueuedMS, o.Spec = nil, nil, 0, o.Spec.OfRank(uint32(id.Rank))
	r.order = order{id: id, at: id, dir: dir, RunOrder: o}
	return r
}

// Follow has a rank that was just made begin when another one has ended.
func Follow(r, other *Rank) {
	r.before = other
	r.turn.Follow(other.turn)
}

// Dir is a rank's directory.
func (n *Node) Dir(id job.RankID) string {
	return filepath.Join(n.Config.StateDir, "ranks", id.String())
}

// ContainerDir is the container's directory of a rank.
func (n *Node) ContainerDir(id job.RankID) string { return filepath.Join(n.Dir(id), "box") }

func (o *order) secretsDir() string { return filepath.Join(o.dir, "mnt", "secrets") }

// lodging is where a guest is on the disk.
func (o *order) lodging() oci.Guest {
	ranks := filepath.Dir(o.dir)
	return oci.Guest{Name: o.id.String(), Home: filepath.Join(ranks, o.at.String(), "box"), Dir: o.containerDir()}
}

// need makes the directory of a guest, for what most of them do not have.
func (o *order) need() error {
	if !o.guest {
		return nil
	}
	return os.MkdirAll(o.dir, 0o711)
}

func (o *order) containerDir() string { return filepath.Join(o.dir, "box") }

// gpus are the UUIDs of the GPUs that were granted.
func (o *order) gpus() []string {
	var list []string
	for _, g := range o.Allocation.GPUs {
		list = append(list, g.UUID)
	}
	return list
}

// signalFirst says whether signals are for the first process alone.
func (o *order) signalFirst() bool {
	g := o.Spec.Gbatch
	return g != nil && g.SignalTo == job.SignalFirst
}

// lease is the file in which the rank's shim reads how long it may go on; empty: it
// needs no word.
func (o *order) lease(file string) string {
	if o.Alone {
		return ""
	}
	return file
}

// stopSignal is what the job wants to be told to end by.
func (o *order) stopSignal() string {
	if g := o.Spec.Gbatch; g != nil && g.StopSignal != "" {
		return g.StopSignal
	}
	return "TERM"
}

func (o *order) grace() time.Duration { return time.Duration(o.GraceMS) * time.Millisecond }

// ending is how the job's programs are ended by one another.
func (o *order) ending() oci.Ending {
	return oci.Ending{Signal: int(signalNumber(o.stopSignal())), GraceMS: o.GraceMS}
}

func (o *order) failTogether() bool { return o.Spec.Gbatch != nil && o.Spec.Gbatch.FailTogether }

// Live takes a new rank through its whole life. It returns false if the daemon
// goes first, which ends ctx: the next one goes on here.
func (r *Rank) Live(ctx context.Context) (over bool) {
	defer r.turn.Pass()
	if exit := r.endedBefore(); exit != nil {
		r.over(ctx, exit)
		return r.end(ctx)
	}
	start, cancel := r.state.startContext(ctx)
	defer cancel(nil)
	err := startInTurn(start, r)
	switch {
	case err == nil:
		r.supervise(ctx)
	case ctx.Err() != nil:
		// The daemon goes. Nothing ran, so nothing need be remembered: the
		// controller orders the rank again.
		r.shelter.leave()
		r.undo()
		r.discard()
		return false
	default:
		r.fail(ctx, err)
	}
	return r.end(ctx)
}

// supervise waits for the container's end and sees to what shall happen to it
// until then. On return the rank has ended, or the daemon is going.
func (r *Rank) supervise(ctx context.Context) {
	watch := newWatch(r)
	defer watch.close()
	defer r.serveLaunches(ctx)()
	defer serveCommands(r)()
	defer serveAnnexes(ctx, r)()
	for {
		watch.look(ctx)
		select {
		case <-r.container.Done():
			watch.close()
			r.conclude(ctx, r.readExit())
			return
		case <-watch.changed:
		case <-watch.measure.C:
			watch.measure.Reset(measureEvery)
			if watch.running {
				r.measure(false)
			}
		case <-r.state.wake:
		case <-watch.limit.C:
			watch.overLimit()
		case <-watch.warn.C:
			watch.early()
		case err := <-watch.stopped:
			watch.stopDone(ctx, err)
		case <-watch.progress.C:
			watch.lookAtProgress()
		case <-ctx.Done():
			return
		}
	}
}

func (r *Rank) setRunning(at time.Time) {
	r.state.change(contact.WithinRunning, func(s *node.RankStatus) {
		s.Phase, s.Progress, s.StartedMS, s.WallMS = node.PhaseRunning, "", at.UnixMilli(), lease.WallMS()
	})
	r.log.Info("rank runs", "pid", r.container.PID())
	if !r.ordered.IsZero() {
		r.node.Counters.Launched(at.Sub(r.ordered))
	}
	r.node.Changed()
}

func (r *Rank) setEnded(e *node.Exit) {
	within := time.Duration(contact.AtOnce)
	if e.OK() && r.turn.Followed() {
		within = contact.WithinRunning // its place is taken already
	}
	r.state.change(within, func(s *node.RankStatus) {
		if s.Phase != node.PhaseRunning && e.StartedMS > 0 && !r.ordered.IsZero() { // it was over before that was told
			r.node.Counters.Launched(time.UnixMilli(e.StartedMS).Sub(r.ordered))
		}
		e.OnClock(lease.WallMS())
		e.FreeMS = time.Now().UnixMilli()
		s.Phase, s.Progress, s.Exit = node.PhaseEnded, "", e
		if e.StartedMS > 0 {
			s.StartedMS = e.StartedMS // the container's own word is more exact
		}
	})
	r.node.Counters.Ended(e.Reason)
	r.node.Changed()
	r.log.Info("rank ended", "code", e.Code, "reason", e.Reason, "message", e.Message)
}
