package nodes

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net/netip"
	"time"

	"github.com/google/uuid"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/control/idle"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/curves"
	"gbatch/internal/ctld/ids"
	"gbatch/internal/ctld/jobstore"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/ctld/samples"
	"gbatch/internal/ctld/site"
	"gbatch/internal/ctld/streams"
	"gbatch/internal/ctld/wire"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/pki"
	"gbatch/internal/state"
	"gbatch/sched"
)

// Exchange is where nodes say what they do, and are told what to do.
type Exchange struct {
	Conf    func() *site.Config
	Loop    *loop.Loop
	Jobs    *jobstore.Reader
	Streams *streams.Hub
	Samples *samples.Samples
	Skews   *samples.Skews
	Curves  *curves.Store
	UID     func(user string) *uint32 // of the account on this machine; nil: there is none
	IDs     *ids.Book
	Key     []byte // by which what nodes keep for the controller is signed
	Log     *slog.Logger
	Now     func() time.Time
	Sign    func(pki.LayersTicket) (ticket string, authority []byte, err error)

	withheld withheld
	sharers  sharers
}

// SyncInput is a node's report.
type SyncInput struct {
	Name string `path:"name"`
	Body api.SyncRequest
}

// Sync takes a node's report, and answers with its desired set when that has changed.
func (s *Exchange) Sync(ctx context.Context, in *SyncInput) (*api.SyncResponse, error) {
	if id := access.Caller(ctx); !id.MayNode(in.Name) {
		return nil, api.Errorf(api.CodeDenied, "%s speaks for itself, not for node %s", id.User, in.Name).WithHint("see name in the node's gnoded.yaml")
	}
	if !site.NodeNameRule.MatchString(in.Name) || in.Body.Instance == "" {
		return nil, api.Errorf(api.CodeBadRequest, "node name %q or its instance id is not valid", in.Name)
	}
	out, err := s.exchange(ctx, in)
	if err != nil {
		s.Loop.Nodes.Notify(in.Name) // see loop.Report
	}
	return out, err
}

// exchange is Sync for who may speak for the node. What came by the node's own word is in its
// answer, so that an end and the next order are one exchange; the open poll stays as it is. An
// answer that is lost on the way is an error to the node, which says its word again.
func (s *Exchange) exchange(ctx context.Context, in *SyncInput) (*api.SyncResponse, error) {
	q := &in.Body
	bound(q)
	skew := s.Skews.Heard(in.Name, q.NowMS, s.Loop.Now())
	ev := control.NodeSync{Name: in.Name, Instance: q.Instance, Boot: q.Boot, Hash: q.InventoryHash, Inventory: q.Inventory, Unhealthy: q.Unhealthy, Faults: q.Faults, Checked: q.Checked, Reboot: q.Reboot, Ranks: samples.OnOurClock(q.Ranks, skew), Prepulled: q.Prepulled, Seen: q.Seen, Again: s.withheld.has(in.Name), From: access.Caller(ctx).From}
	for _, g := range q.Samples {
		if g.Utilization != nil {
			ev.Loads = append(ev.Loads, idle.Load{UUID: g.UUID, Permille: int(*g.Utilization * 10)})
		}
	}
	if told, ok := s.told(q.Records); ok {
		ev.Knows = told.At
		if !s.Loop.Was(told.Point) {
			ev.Ahead, ev.Next = true, told.Next+sinceTold
		}
	}
	told := in.Name
	if q.WaitMS > 0 {
		told = ""
	}
	answer, err := loop.Report(ctx, s.Loop, told, ev)
	if err == nil && ev.Again {
		s.withheld.drop(in.Name)
	}
	if e := (*api.Error)(nil); errors.As(err, &e) && e.Code == api.CodeStorageFull {
		// What it says must wait, and is said again; its jobs must not.
		_, err = loop.Do(ctx, s.Loop, control.NodeAlive{Name: in.Name, Instance: q.Instance, Boot: q.Boot, Ranks: ev.Ranks})
	}
	if err != nil {
		return nil, err
	}
	if answer.Double != "" {
		return nil, api.Errorf(api.CodeConflict, "%s", answer.Double).
			WithHint("if it is a copy of that machine, stop gnoded here, remove its state directory and join it under a name of its own")
	}
	if answer.Refused != "" && q.Inventory != nil {
		s.Log.Error("a node's inventory is refused, and the one before it stays: it gets no new jobs until it sends another", "node", in.Name, "reason", answer.Refused)
	}
	if answer.WentBack {
		s.Log.Error("the controller's records went back to an older state, as of a copy that was put back: a node was told of what they lack. Jobs that waited are on hold, and nodes get new ones when they have said what they run; restore a backup instead of a copy", "node", in.Name)
	}
	s.Samples.Put(in.Name, q.Samples)
	s.Samples.PutUse(in.Name, q.Use)
	s.keepUse(in.Name, q.Use)
	s.Samples.PutStorage(in.Name, q.Storage)
	want := answer.WantInventory
	if !want {
		s.waitOrders(ctx, in.Name, q)
	}
	if id := access.Caller(ctx); id.Ended != nil && id.Ended.Err() != nil {
		return nil, api.Errorf(api.CodeUnauthorized, "the key of node %s was revoked", in.Name)
	}
	if err := ctx.Err(); err != nil {
		return nil, err // nobody is there to be told
	}
	s.Loop.Telling(in.Name)
	out := s.orders(ctx, in.Name, q)
	out.WantInventory, out.Records, out.Nonce = want, s.tell(), q.Nonce
	return &out, nil
}

// waitOrders holds a node's poll open until there is something for it.
func (s *Exchange) waitOrders(ctx context.Context, name string, q *api.SyncRequest) {
	longest := time.Duration(s.Conf().Nodes.Suspect) * time.Second / 3
	if s.withheld.has(name) {
		longest = min(longest, againAfter)
	}
	late := time.NewTimer(min(time.Duration(q.WaitMS)*time.Millisecond, longest))
	defer late.Stop()
	for q.WaitMS > 0 {
		ring, done := s.Loop.Nodes.Wait(name)
		n := s.Loop.View().Node(name)
		if n == nil || n.Version != q.Seen || s.Streams.Waiting(name) {
			done()
			return
		}
		select {
		case <-ring:
			done()
		case <-late.C:
			done()
			return
		case <-ctx.Done():
			done()
			return
		}
	}
}

// spreadMS is the time over which so many nodes come back: about four times what a processor computes for each, and no longer than that the site is whole
// again within 5 s. 5,000 nodes then leave half of two processors to what users ask. Who has something to tell does not wait for it.
func spreadMS(nodes int) int64 { return min(4*int64(nodes), 3000) }

// orders is a node's desired set. Nothing that is wrong with one job keeps the node from
// the others, or from its lease.
func (s *Exchange) orders(ctx context.Context, name string, q *api.SyncRequest) api.SyncResponse {
	v := s.Loop.View()
	n := v.Node(name)
	out := api.SyncResponse{LeaseMS: s.Conf().Lease().Milliseconds(), SpreadMS: spreadMS(v.Nodes.Len()), Streams: s.Streams.Take(name)}
	if n == nil {
		return out
	}
	if n.Instance == q.Instance {
		out.Noted = n.Faults
	}
	out.Reboot = n.OrdersReboot()
	out.Version, out.Changed = n.Version, n.Version != q.Seen
	if !out.Changed {
		return out
	}
	held := map[job.RankID]node.RankStatus{}
	for _, r := range q.Ranks {
		held[r.ID] = r
	}
	for _, num := range n.Jobs {
		j := v.Job(num)
		for i, r := range j.Attempt.Ranks {
			if r.Alloc.Node != name || r.Phase == node.PhaseEnded {
				continue
			}
			o := api.Order{ID: j.RankID(i), UUID: j.Identity()}
			has, holds := held[o.ID]
			// What has begun is never sent whole again: it would run twice where another
			// machine has this one's state directory.
			holds = holds && j.Is(has) || r.Phase.Begun()
			if !holds && (j.AwaitsImage(i) || !s.knows(name, q, r)) {
				continue
			}
			o.Paused, o.Go = j.Attempt.Paused != "", j.MayBegin(i)
			if before := v.Job(j.Attempt.Behind); before != nil && !j.Holds() {
				id := before.RankID(0)
				o.After = &id
			}
			if e := j.Ending; e != nil && (!e.Ahead || n.Inventory.Ahead) { // an older node has begun it, and would end that
				o.Stop = &api.Stop{Signal: e.Signal, GraceMS: int64(e.Grace), Reason: e.Reason, Text: e.Text, Ahead: e.Ahead}
			}
			for _, sent := range j.Attempt.Sent {
				o.Signals = append(o.Signals, api.Signal{Seq: sent.Seq, Name: sent.Name})
			}
			if l := j.Attempt.Launches; l != nil && i == 0 {
				for _, run := range l.Running {
					if run.Cancel != "" {
						o.CancelSteps = append(o.CancelSteps, run.Number)
					}
				}
			}
			if q := r.Asked(); q != nil {
				o.Resize = &api.Resize{Seq: q.Seq, CPUs: int(q.To.MilliCPU / 1000), MemBytes: q.To.MemMiB << 20}
			}
			of := &has
			if !holds {
				of = nil
			}
			if s.complete(ctx, &o, j, i, of) {
				out.Desired = append(out.Desired, o)
			}
		}
	}
	out.Documents = apart(out.Desired, q.Documents)
	out.Prepull = s.prepulls(v, n)
	return out
}

// knows says whether it is recorded of a rank that its node's disk knows of a fresh answer: see fit.Patience.Fresh. Where it is not,
// the node is answered without the rank, says at once that it was answered, and is told then. A node of an older program never
// says so: it keeps nothing, and has acted on an answer.
func (s *Exchange) knows(name string, q *api.SyncRequest, r state.Rank) bool {
	fresh := s.Conf().Patience().Fresh(sched.Time(s.Loop.Now().UnixMilli()), r.Knew) || q.Records == "" && q.Seen > 0
	if !fresh {
		s.withheld.add(name)
	}
	return fresh
}

func (s *Exchange) runOrder(j *state.Job, rank int) (*api.RunOrder, error) {
	p, _ := s.Conf().Project(j.Owner.Project)
	r := j.Attempt.Ranks[rank]
	o := &api.RunOrder{
		UUID: uuid.UUID(j.UUID).String(), User: j.Owner.User, UID: s.UID(j.Owner.User), Project: j.Owner.Project, ProjectGID: p.GID,
		Allocation: wire.Allocation(r.Alloc), Ranks: len(j.Attempt.Ranks),
		LimitMS: int64(j.LimitLeft()), GraceMS: int64(s.Conf().Limits.Grace.Millis()),
		Digest: j.Attempt.Image, Alone: j.Attempt.Alone, Partition: j.Attempt.Partition,
	}
	if s.Conf().LogPlace(j.Owner.Project) != site.LogsOnNode {
		o.Logs = &api.LogPlace{Controller: true}
	}
	o.QueuedMS = s.queuedMS(j)
	s.array(o, j)
	if x := j.Restart; x != nil {
		o.Restarts, o.Initial = int(x.Tries), uuid.UUID(x.Initial).String()
	}
	o.Restarts -= int(j.TakenBack) // nothing of them ran
	if g := j.Request.StopGrace; g > 0 {
		o.GraceMS = int64(g)
	}
	name, doc, err := s.Jobs.Named(j)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	o.Document, o.Spec = name, *doc
	s.gang(o, j)
	o.ImagePeers = s.imagePeers(doc.Request.Docker.Image, s.Loop.View().Node(r.Alloc.Node), false)
	if doc.Launches() {
		o.Secret, o.Port = s.Jobs.LaunchSecret(j), launchPort(j.Number)
		o.Commands = s.Conf().Batch.Commands
	}
	o.IDs, err = s.IDs.Of(j.Owner.User, o.UID)
	return o, err
}

// submittedAndPlaced is the version of a job that was submitted and got a place, and to which nothing else has happened.
const submittedAndPlaced = 2

// queuedMS is for how long a job could have begun: what its image's registry said meanwhile, to whomever, it may have
// heard itself. 0: it was on hold, waits for others or was changed, so that the tag may stand for something else since.
func (s *Exchange) queuedMS(j *state.Job) int64 {
	if j.Version != submittedAndPlaced || j.Parent != 0 || j.Waits != nil || j.Request.NotBefore != 0 {
		return 0
	}
	return max(1, s.Loop.Now().UnixMilli()-int64(j.Submitted))
}

// gang tells a rank where the others are, and how they reach each other.
func (s *Exchange) gang(o *api.RunOrder, j *state.Job) {
	if o.Ranks < 2 {
		return
	}
	v, own := s.Loop.View(), o.Spec.Network() == job.NetworkBridge
	for i, r := range j.Attempt.Ranks {
		p := api.Peer{Node: r.Alloc.Node, Address: r.Alloc.Node, GPUs: len(r.Alloc.GPUs), CPUs: int(r.Alloc.MilliCPU / 1000)}
		n := v.Node(r.Alloc.Node)
		switch {
		case n != nil && own:
			p.Address = n.Inventory.Address
		case n != nil:
			p.Address = cmp.Or(n.Inventory.Address, n.Inventory.DNSName, n.Inventory.Hostname, n.Name)
		}
		if own {
			p.Inside, p.Tunnel = inside(s.Conf().GangSubnet, i), tunnel(j, i)
		}
		o.Peers = append(o.Peers, p)
	}
	o.MasterPort = masterPort(j.Number)
}

// inside is a rank's address in its gang's network.
func inside(subnet netip.Prefix, rank int) string {
	a := subnet.Addr().As4()
	binary.BigEndian.PutUint32(a[:], binary.BigEndian.Uint32(a[:])+uint32(rank)+1)
	return netip.PrefixFrom(netip.AddrFrom4(a), subnet.Bits()).String()
}

// tunnel is the number of a rank's tunnel, 1 to 16,777,215. It has to be its
// own on the rank's machine only, whose kernel sees to that: two that meet there
// fail one start in millions, and the next attempt has other numbers.
func tunnel(j *state.Job, rank int) uint32 {
	h := fnv.New64a()
	h.Write(j.UUID[:])
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(j.Attempt.Attempt)<<32|uint64(rank)))
	return uint32(h.Sum64()%(1<<24-1)) + 1
}

// masterPort is the port on which a gang's ranks meet: its own for each of the
// last 10,000 jobs, below the range that the kernel gives out.
func masterPort(n job.Number) int { return 20000 + int(n%10000) }

// launchPort is the port on which the ranks of a batch script take tasks,
// likewise.
func launchPort(n job.Number) int { return 10000 + int(n%10000) }

// array tells a rank of the array that its job is a task of.
func (s *Exchange) array(o *api.RunOrder, j *state.Job) {
	p := s.Loop.View().Job(j.Parent)
	if j.Parent == 0 || p == nil || p.Tasks == nil {
		return
	}
	all := p.Tasks.All
	o.Array = &job.ArrayTask{Parent: p.Number, Index: j.Index, First: all[0].First, Last: all[len(all)-1].Last, Count: all.Len(), Step: all.Step()}
}

// prepulls are the images that a node shall have ahead. One whose document or
// credentials cannot be read is left out: the job's start will tell.
func (s *Exchange) prepulls(v *state.View, n *state.Node) []api.Prepull {
	var out []api.Prepull
	for _, p := range n.Prepulls {
		j := v.Job(p.Job)
		if j == nil || j.State != job.Queued {
			continue
		}
		_, spec, err := s.Jobs.Named(j)
		if err != nil || spec.Request.Docker.Image == "" {
			continue
		}
		p := v.Job(j.Parent)
		q := api.Prepull{Job: j.Number, Image: spec.Request.Docker.Image, Digest: j.Image(p), Peers: s.imagePeers(spec.Request.Docker.Image, n, true)}
		if j.Sealed || p != nil && p.Sealed {
			kept, err := s.Jobs.Unseal(j.Document())
			if err != nil {
				continue
			}
			if kept.Credential != (api.Credential{}) {
				q.Registry = &kept.Credential
			}
		}
		out = append(out, q)
	}
	return out
}

// addSecrets completes an order with what the node has to have and has not.
func (s *Exchange) addSecrets(o *api.Order, j *state.Job, has uint32) error {
	owner := j
	if j.Parent > 0 {
		if owner = s.Loop.View().Job(j.Parent); owner == nil {
			return fmt.Errorf("%w: task %s is here and its array is gone", errUnreadable, j.ID())
		}
	}
	registry := o.Run != nil && owner.Sealed
	secrets := owner.Secrets > 0 && owner.Secrets != has
	if !registry && !secrets {
		return nil
	}
	kept, err := s.Jobs.Unseal(j.Document())
	if err != nil {
		return fmt.Errorf("%w: %w", errUnreadable, err)
	}
	if registry && kept.Credential != (api.Credential{}) {
		o.Run.Registry = &kept.Credential
	}
	if secrets {
		o.Secrets = &api.Secrets{Version: owner.Secrets, Values: kept.Secrets}
	}
	return nil
}
