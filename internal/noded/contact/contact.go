package contact

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/noded/identity"
	"gbatch/oci/atomicfile"
	"gbatch/oci/boot"
)

// Controller is what contact needs of the controller.
type Controller interface {
	NodeSync(ctx context.Context, name string, req *api.SyncRequest) (*api.SyncResponse, error)
	JoinNode(ctx context.Context, name, token string, request []byte) ([]byte, error)
	RenewNode(ctx context.Context, name string, request []byte) ([]byte, error)
}

// Node is what contact sees of the node: what it says, and what it is told.
type Node interface {
	// Report is what the node says of itself and its ranks.
	Report() *api.SyncRequest
	// Desire sets in motion what a new desired set asks for. It only starts things.
	Desire(*api.SyncResponse)
	// Noted says up to which of its faults the controller has drained the node.
	Noted(seq uint64)
	// OrderReboot says which order to reboot stands; 0: none.
	OrderReboot(seq uint64)
	// Stream answers a request for bytes, in the background.
	Stream(context.Context, api.StreamRequest)
	// LeaseOver ends all ranks, as the controller may give them away.
	LeaseOver(silent, grace time.Duration)
}

// Options are fixed while there is contact.
type Options struct {
	Name, Address string        // of the node, of the controller
	File          string        // where it is noted how long the node may go on alone
	Records       string        // file that keeps what the controller said of its records
	Boot          string        // of the machine
	Lease         time.Duration // where the controller has not said
	Controller    Controller
	Credential    *identity.Credential
	Node          Node
	Log           *slog.Logger
	Machine       Machine
}

// Machine is what contact has of the machine. What is nil is the machine's own.
type Machine struct {
	Steady func() time.Duration // its clock that runs from boot and through sleep
	Wall   func() time.Time     // the one that people set
	Files  Files
	Draw   func(loop string, most time.Duration) time.Duration // below most, at random for each loop, so that they do not come back together
}

// Files are the small files that are read at the start and replaced as a whole.
type Files interface {
	Read(path string) ([]byte, error)
	Write(path string, data []byte) error
}

// disk is where files are.
type disk struct{}

func (disk) Read(path string) ([]byte, error)     { return os.ReadFile(path) }
func (disk) Write(path string, data []byte) error { return atomicfile.Write(path, data) }

// own fills in what is the machine's own.
func (m Machine) own() Machine {
	if m.Steady == nil {
		m.Steady = boot.Elapsed
	}
	if m.Wall == nil {
		m.Wall = time.Now
	}
	if m.Files == nil {
		m.Files = disk{}
	}
	if m.Draw == nil {
		m.Draw = func(_ string, most time.Duration) time.Duration { return rand.N(most) }
	}
	return m
}

// backoff is between the tries of a loop.
func (m Machine) backoff(loop string) client.Backoff {
	return client.Backoff{Draw: func(most time.Duration) time.Duration { return m.Draw(loop, most) }}
}

// Contact is the exchange with the controller.
type Contact struct {
	Options
	lease   *lease
	leaseC  chan struct{} // the lease was renewed
	updates updates
	turn    chan struct{} // has one while an exchange is made that is answered at once

	isAway  atomic.Bool   // the controller does not answer
	unnoted atomic.Bool   // the file cannot be written
	spread  atomic.Int64  // nodes that have lost the same controller come back within this time
	heard   atomic.Uint64 // answers

	// Held while a report is gathered and while an answer is acted on, so that
	// a report that names a version has its ranks.
	mu            sync.Mutex
	order         ordering
	wantInventory bool
	records       *memory
	documents     documents
}

// Open reads how long the node may go on alone.
func Open(o Options) *Contact {
	o.Machine = o.Machine.own()
	return &Contact{Options: o, lease: openLease(o.File, o.Boot, o.Lease, o.Machine), leaseC: make(chan struct{}, 1), turn: make(chan struct{}, 1),
		updates: updates{wake: make(chan struct{}, 1)}, wantInventory: true, records: openMemory(o.Records, o.Machine.Files)}
}

// Run keeps up contact until ctx ends.
func (c *Contact) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for _, loop := range []func(context.Context){c.poll, c.sendUpdates, c.watchLease} {
		wg.Go(func() { loop(ctx) }) // ends with ctx
	}
	wg.Wait()
}

// Tell asks for a sync within the given time.
func (c *Contact) Tell(within time.Duration) { c.updates.tell(within) }

// LeaseFile is where shims read how long they may go on.
func (c *Contact) LeaseFile() string { return c.lease.path }

// Silence is how long the controller has not answered.
func (c *Contact) Silence() time.Duration {
	_, silent := c.lease.left()
	return silent
}

// Heard says that a desired set has come.
func (c *Contact) Heard() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.seen > 0
}

// poll keeps one long poll open. It is how orders arrive.
func (c *Contact) poll(ctx context.Context) {
	pause := c.Machine.backoff("poll")
	wait := time.Duration(0) // the first sync is answered at once
	lost := uint64(0)        // what was heard until there was no answer
	for ctx.Err() == nil {
		err := c.Credential.Ready(ctx, c.Controller, c.Log)
		switch {
		case err != nil:
		case wait > 0:
			err = c.sync(ctx, wait)
		default:
			err = c.atOnce(ctx, func() bool { return c.heard.Load() == lost })
		}
		if err != nil {
			lost = c.heard.Load()
			c.Credential.Refused(err)
			c.away(ctx, err, &pause)
			wait = 0
			continue
		}
		c.back() // also if the other loop was answered just before this one noted the absence
		pause.Reset()
		if wait == 0 {
			_ = client.Sleep(ctx, c.updates.gathering()) // others may still come
		}
		wait = c.lease.wait()
	}
}

// sendUpdates sends one sync for all that changed since the last one; never more
// than one is in flight.
func (c *Contact) sendUpdates(ctx context.Context) {
	pause := c.Machine.backoff("updates")
	for c.updates.due(ctx) == nil {
		if err := c.atOnce(ctx, c.updates.isDue); err != nil {
			_ = client.Sleep(ctx, pause.Next()) // the poll loop says that the controller is away
			continue
		}
		pause.Reset()
	}
}

// atOnce makes an exchange that is answered at once, if it is still to be made when its turn has come. When the controller was away, both loops
// have one to make, and for two at a time there would be two connections, just when all nodes make theirs. One of the two says all there is.
func (c *Contact) atOnce(ctx context.Context, still func() bool) error {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.turn }()
	if !still() {
		return nil
	}
	due := c.updates.isDue()
	err := c.sync(ctx, 0)
	if err != nil && due {
		c.Tell(AtOnce) // still
	}
	return err
}

// away notes a failed sync, once in each absence, and waits, at first for its part of the time over which all nodes come back.
//
// When all come, connections cost the most, and a node needs a second one for what it has to tell while its poll is open. So a poll is opened
// when the others have come, and what need not be told at once waits as long.
func (c *Contact) away(ctx context.Context, err error, pause *client.Backoff) {
	if ctx.Err() != nil {
		return
	}
	wait := pause.Next()
	c.gather()
	if !c.isAway.Swap(true) {
		if spread := time.Duration(c.spread.Load()); spread > 0 {
			wait += spread/8 + c.Machine.Draw("spread", spread-spread/8) // before that most often no controller answers
		}
		left, _ := c.lease.left()
		c.Log.Warn("controller does not answer; running jobs go on", "controller", c.Address, "error", err, "lease_left", left.Round(time.Second))
	}
	_ = client.Sleep(ctx, wait)
}

// gather has all that is not told at once, and the poll, wait until other nodes have come back that have lost the same controller.
func (c *Contact) gather() {
	if spread := time.Duration(c.spread.Load()); spread > 0 {
		c.updates.gather(spread + c.Machine.Draw("gather", spread))
	}
}

// back notes the first answer after an absence. The others are answered from now on, too.
func (c *Contact) back() {
	if c.isAway.Swap(false) {
		c.gather()
		c.Log.Info("controller answers again", "controller", c.Address)
	}
}

// errNotAnswer is of an answer that was sent before, to another request, by whatever
// lies between: a lease and a desired set of the past.
var errNotAnswer = errors.New("what came is the answer to another request: something between here and the controller repeats old answers")

// sync makes one exchange and acts on the answer.
func (c *Contact) sync(ctx context.Context, wait time.Duration) error {
	req, ticket := c.request(wait)
	sent := c.lease.now()
	resp, err := c.Controller.NodeSync(ctx, c.Name, req)
	if err == nil && resp.Nonce != 0 && resp.Nonce != req.Nonce {
		err = errNotAnswer
	}
	if err != nil {
		return err
	}
	lease := time.Duration(resp.LeaseMS) * time.Millisecond
	err = c.lease.answered(sent, lease)
	if failed := err != nil; c.unnoted.Swap(failed) != failed {
		c.Log.Error("contact cannot be noted: jobs go on no longer than was noted before; a nil error takes this back", "file", c.File, "error", err)
	}
	c.renewed()
	c.heard.Add(1)
	c.back()
	c.spread.Store(int64(min(time.Duration(resp.SpreadMS)*time.Millisecond, lease/4))) // whatever it says: contact is before the lease ends
	c.take(ctx, ticket, resp)
	return nil
}

// request is what the node says, and the ticket by which the answer is put in
// order with others.
func (c *Contact) request(wait time.Duration) (*api.SyncRequest, ticket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if wait == 0 {
		c.updates.taken()
	}
	req := c.Node.Report()
	req.Records = c.records.text
	req.Seen, req.WaitMS, req.NowMS = c.order.seen, wait.Milliseconds(), c.Machine.Wall().UnixMilli()
	req.Nonce = rand.Uint64() | 1 // never 0
	req.Documents = c.documents.names()
	if !c.wantInventory {
		req.Inventory = nil
	}
	return req, ticket{seen: c.order.seen, epoch: c.order.epoch, documents: c.documents}
}

// take acts on an answer.
func (c *Contact) take(ctx context.Context, t ticket, resp *api.SyncResponse) {
	c.mu.Lock()
	c.wantInventory = resp.WantInventory
	if err := c.records.keep(resp.Records, c.lease.now()); err != nil {
		c.Log.Debug("what the controller said of its records is not kept", "error", err)
	}
	c.Node.Noted(resp.Noted)
	if c.order.accept(t, resp) {
		c.documents = c.documents.fill(t.documents, resp)
		c.Node.Desire(resp)
	}
	if resp.Version == c.order.seen { // not one that came late
		c.Node.OrderReboot(resp.Reboot)
	}
	if resp.WantInventory {
		c.Tell(AtOnce)
	}
	c.mu.Unlock()
	for _, s := range resp.Streams {
		c.Node.Stream(ctx, s)
	}
}
