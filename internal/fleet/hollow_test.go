package fleet

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/contact"
	"gbatch/internal/noded/identity"
)

// hollow is a node whose ranks are timers. All that it says and hears goes through
// the real agent's contact.
type hollow struct {
	name      string
	inventory *node.Inventory
	runs      time.Duration // how long a rank runs
	ctl       *client.Client
	contact   *contact.Contact
	counts    *counts

	mu    sync.Mutex
	ranks map[job.RankID]*node.RankStatus
}

// counts are what all hollow nodes have done together.
type counts struct {
	mu          sync.Mutex
	begun       map[job.RankID]int
	first, last time.Time            // when a rank was begun, when one ended
	after, next time.Time            // when a rank was begun first after a time
	syncs       []time.Duration      // of exchanges that the controller does not hold open
	heard       map[string]time.Time // when a node's last exchange was answered
}

// join makes the node with that place among all known to the controller by the token in a file.
func (f *fleet) join(ctx context.Context, place int, tokenFile string) (*hollow, error) {
	name, runs := fmt.Sprintf("n%d", place+1), f.runs
	if f.apart {
		runs = f.runs/2 + f.runs*time.Duration(place)/time.Duration(f.nodes)
	}
	cfg := config.Config{Name: name, Controller: f.address, StateDir: filepath.Join(f.ctld.dir, name), JoinTokenFile: tokenFile}
	if err := identity.Join(ctx, cfg, "fleet"); err != nil {
		return nil, err
	}
	credential, err := identity.OpenCredential(&cfg)
	if err != nil {
		return nil, err
	}
	h := &hollow{name: name, runs: runs, ctl: identity.Dial(&cfg, credential, "fleet"), counts: &f.counts, ranks: map[job.RankID]*node.RankStatus{}}
	h.inventory = &node.Inventory{Hostname: name, Cluster: 1, Bridge: true, Gang: true, CPUs: 16 * f.gpus, MemBytes: int64(f.gpus) * 128 << 30, Storage: []node.Root{}}
	for i := range f.gpus {
		h.inventory.GPUs = append(h.inventory.GPUs, node.GPU{UUID: fmt.Sprintf("GPU-%s-%d", name, i), Index: i, Model: "H100", MemBytes: 80 << 30, ComputeCap: 90})
	}
	h.contact = contact.Open(contact.Options{
		Name: name, Address: f.address, File: "contact", Records: "records", Boot: "b-" + name, Lease: time.Minute,
		Controller: timed{h.ctl, &f.counts}, Credential: credential, Node: h, Log: slog.New(slog.DiscardHandler), Machine: contact.Machine{Files: memory{}},
	})
	return h, nil
}

// timed notes how long the controller takes for an exchange.
type timed struct {
	*client.Client
	counts *counts
}

func (t timed) NodeSync(ctx context.Context, name string, req *api.SyncRequest) (*api.SyncResponse, error) {
	began := time.Now()
	resp, err := t.Client.NodeSync(ctx, name, req)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	t.counts.mu.Lock()
	defer t.counts.mu.Unlock()
	t.counts.heard[name] = now
	if req.WaitMS == 0 {
		t.counts.syncs = append(t.counts.syncs, now.Sub(began))
	}
	return resp, nil
}

// memory has files that are forgotten at once: a hollow node is not started again.
type memory struct{}

func (memory) Read(string) ([]byte, error) { return nil, os.ErrNotExist }
func (memory) Write(string, []byte) error  { return nil }

// Report lists all ranks.
func (h *hollow) Report() *api.SyncRequest {
	h.mu.Lock()
	defer h.mu.Unlock()
	req := &api.SyncRequest{Instance: "i-" + h.name, Boot: "b-" + h.name, Inventory: h.inventory, InventoryHash: "as at first", Ranks: []node.RankStatus{}}
	for _, r := range h.ranks {
		req.Ranks = append(req.Ranks, *r)
	}
	return req
}

// Desire begins the ranks that are new and forgets those that nobody wants any more.
func (h *hollow) Desire(resp *api.SyncResponse) {
	h.mu.Lock()
	defer h.mu.Unlock()
	wanted := map[job.RankID]bool{}
	for _, o := range resp.Desired {
		wanted[o.ID] = true
		switch r := h.ranks[o.ID]; {
		case r != nil && o.Stop != nil:
			h.end(r, &node.Exit{Code: 143, Signal: 15, Reason: o.Stop.Reason})
		case r == nil && o.Run == nil:
			h.contact.Tell(contact.AtOnce) // the controller took us to hold it
		case r == nil:
			h.begin(o)
		}
	}
	maps.DeleteFunc(h.ranks, func(id job.RankID, _ *node.RankStatus) bool { return !wanted[id] })
}

// begin has a rank run. Called with mu held.
func (h *hollow) begin(o api.Order) {
	now := time.Now()
	r := &node.RankStatus{ID: o.ID, UUID: o.UUID, Phase: node.PhaseRunning, StartedMS: now.UnixMilli()}
	h.ranks[o.ID] = r
	h.counts.mu.Lock()
	h.counts.begun[o.ID]++
	if h.counts.next.IsZero() && now.After(h.counts.after) {
		h.counts.next = now
	}
	if h.counts.first.IsZero() {
		h.counts.first = now
	}
	h.counts.mu.Unlock()
	h.contact.Tell(contact.WithinRunning)
	time.AfterFunc(h.runs, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.end(r, &node.Exit{})
	})
}

// end ends a rank that runs. Called with mu held.
func (h *hollow) end(r *node.RankStatus, exit *node.Exit) {
	if r.Phase == node.PhaseEnded {
		return
	}
	now := time.Now()
	exit.StartedMS, exit.EndedMS = r.StartedMS, now.UnixMilli()
	r.Phase, r.Exit = node.PhaseEnded, exit
	h.counts.mu.Lock()
	h.counts.last = now
	h.counts.mu.Unlock()
	h.contact.Tell(contact.AtOnce)
}

// LeaseOver ends all ranks, as the controller may give them to other nodes.
func (h *hollow) LeaseOver(time.Duration, time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.ranks {
		h.end(r, &node.Exit{Code: 137, Signal: 9, Reason: job.NodeFail})
	}
}

// Stream refuses: timers print nothing.
func (h *hollow) Stream(ctx context.Context, req api.StreamRequest) {
	go func() { // ends with its answer
		_ = h.ctl.FailStream(ctx, req.ID, "a hollow node has no containers")
	}()
}

func (h *hollow) Noted(uint64)       {}
func (h *hollow) OrderReboot(uint64) {}
