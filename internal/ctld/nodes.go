package ctld

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/google/uuid"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

type syncInput struct {
	Name string `path:"name"`
	Body api.SyncRequest
}

var nodeNameRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func (s *Server) sync(ctx context.Context, in *syncInput) (*body[api.SyncResponse], error) {
	if id := caller(ctx); !id.mayNode(in.Name) {
		return nil, denied(fmt.Sprintf("%s speaks for itself, not for node %s", id.user, in.Name), "see name in the node's gnoded.yaml")
	}
	q := &in.Body
	if !nodeNameRule.MatchString(in.Name) || q.Instance == "" {
		return nil, &api.Error{Status: 400, Code: api.CodeBadRequest, Message: fmt.Sprintf("node name %q or its instance id is not valid", in.Name)}
	}
	skew := s.skews.heard(in.Name, q.NowMS, s.now())
	ev := control.NodeSync{Name: in.Name, Instance: q.Instance, Boot: q.Boot, Hash: q.InventoryHash, Inventory: q.Inventory, Unhealthy: q.Unhealthy, Ranks: onOurClock(q.Ranks, skew), Prepulled: q.Prepulled}
	for _, g := range q.Samples {
		if g.Utilization != nil {
			ev.Loads = append(ev.Loads, control.GPULoad{UUID: g.UUID, Permille: int(*g.Utilization * 10)})
		}
	}
	answer, err := s.loop.do(ctx, ev)
	if err != nil {
		return nil, s.fail(err)
	}
	if r, ok := answer.(*control.Refusal); ok {
		return nil, refused(r)
	}
	s.samples.put(in.Name, q.Samples)
	s.samples.putUse(in.Name, q.Use)
	want := answer.(control.SyncAnswer).WantInventory
	if !want {
		s.waitOrders(ctx, in.Name, q)
	}
	if id := caller(ctx); id.ended != nil && id.ended.Err() != nil {
		return nil, unauthorized("", "the key of node %s was revoked", in.Name)
	}
	out, err := s.orders(in.Name, q)
	if err != nil {
		return nil, s.fail(err)
	}
	out.WantInventory = want
	return &body[api.SyncResponse]{out}, nil
}

// waitOrders holds a node's poll open until there is something for it.
func (s *Server) waitOrders(ctx context.Context, name string, q *api.SyncRequest) {
	longest := time.Duration(s.cfg().Nodes.Suspect) * time.Second / 3
	late := time.NewTimer(min(time.Duration(q.WaitMS)*time.Millisecond, longest))
	defer late.Stop()
	for q.WaitMS > 0 {
		ring, done := s.loop.nodes.wait(name)
		n := s.loop.view.Load().Node(name)
		if n == nil || n.Version != q.Seen || s.streams.waiting(name) {
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

// orders is a node's desired set.
func (s *Server) orders(name string, q *api.SyncRequest) (api.SyncResponse, error) {
	v := s.loop.view.Load()
	n := v.Node(name)
	out := api.SyncResponse{LeaseMS: s.cfg().lease().Milliseconds(), Streams: s.streams.take(name)}
	if n == nil {
		return out, nil
	}
	out.Version, out.Changed = n.Version, n.Version != q.Seen
	if !out.Changed {
		return out, nil
	}
	held, secrets := map[job.RankID]bool{}, map[job.RankID]uint32{}
	for _, r := range q.Ranks {
		held[r.ID], secrets[r.ID] = true, r.Secrets
	}
	for _, num := range n.Jobs {
		j := v.Job(num)
		for i, r := range j.Attempt.Ranks {
			if r.Alloc.Node != name || r.Phase == node.PhaseEnded {
				continue
			}
			o := api.Order{ID: j.RankID(i)}
			if !held[o.ID] && j.AwaitsImage(i) {
				continue
			}
			o.Paused, o.Go = j.Attempt.Paused != "", j.MayBegin(i)
			if e := j.Ending; e != nil {
				o.Stop = &api.Stop{Signal: e.Signal, GraceMS: int64(e.Grace), Reason: e.Reason, Text: e.Text}
			}
			for _, sent := range j.Attempt.Sent {
				o.Signals = append(o.Signals, api.Signal{Seq: sent.Seq, Name: sent.Name})
			}
			if q := r.Asked(); q != nil {
				o.Resize = &api.Resize{Seq: q.Seq, CPUs: int(q.To.MilliCPU / 1000), MemBytes: q.To.MemMiB << 20}
			}
			if !held[o.ID] {
				var err error
				if o.Run, err = s.runOrder(j, i); err != nil {
					return out, err
				}
			}
			if err := s.addSecrets(&o, j, secrets[o.ID]); err != nil {
				return out, err
			}
			out.Desired = append(out.Desired, o)
		}
	}
	out.Prepull = s.prepulls(v, n)
	return out, nil
}

func (s *Server) runOrder(j *control.Job, rank int) (*api.RunOrder, error) {
	p, _ := s.cfg().project(j.Owner.Project)
	r := j.Attempt.Ranks[rank]
	o := &api.RunOrder{
		UUID: uuid.UUID(j.UUID).String(), User: j.Owner.User, UID: s.auth.people.uid(j.Owner.User), Project: j.Owner.Project, ProjectGID: p.GID,
		Allocation: allocationToAPI(r.Alloc), Ranks: len(j.Attempt.Ranks),
		LimitMS: int64(j.LimitLeft()), GraceMS: int64(s.cfg().Limits.Grace.millis()),
		Digest: j.Attempt.Image,
	}
	s.gang(o, j)
	s.array(o, j)
	if x := j.Restart; x != nil {
		o.Restarts, o.Initial = int(x.Tries), uuid.UUID(x.Initial).String()
	}
	if g := j.Request.StopGrace; g > 0 {
		o.GraceMS = int64(g)
	}
	doc, err := s.document(j)
	if err != nil {
		return nil, err
	}
	o.Spec = *doc
	return o, nil
}

// gang tells a rank where the others are.
func (s *Server) gang(o *api.RunOrder, j *control.Job) {
	if o.Ranks < 2 {
		return
	}
	v := s.loop.view.Load()
	for _, r := range j.Attempt.Ranks {
		p := api.Peer{Node: r.Alloc.Node, Address: r.Alloc.Node, GPUs: len(r.Alloc.GPUs)}
		if n := v.Node(r.Alloc.Node); n != nil {
			p.Address = firstOf(n.Inventory.Address, n.Inventory.DNSName, n.Inventory.Hostname, n.Name)
		}
		o.Peers = append(o.Peers, p)
	}
	o.MasterPort = masterPort(j.Number)
}

// masterPort is the port on which a gang's ranks meet: its own for each of the
// last 10,000 jobs, below the range that the kernel gives out.
func masterPort(n job.Number) int { return 20000 + int(n%10000) }

type clusterInput struct{}

func (s *Server) cluster(context.Context, *clusterInput) (*body[api.ClusterInfo], error) {
	v := s.loop.view.Load()
	out := api.ClusterInfo{Nodes: []api.Node{}}
	for _, n := range v.Nodes {
		node := nodeToAPI(v, n)
		s.samples.fill(&node)
		s.skews.fill(&node)
		out.Nodes = append(out.Nodes, node)
	}
	return &body[api.ClusterInfo]{out}, nil
}
