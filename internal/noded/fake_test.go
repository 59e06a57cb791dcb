package noded

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// fakeController speaks the wire contract and keeps, as the real one does, a
// desired set and what the node last said. It runs in the test's process, so
// it outlives daemons that are killed.
type fakeController struct {
	t   testing.TB
	srv *httptest.Server

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at each change
	version  uint64
	desired  map[job.RankID]api.Order
	status   map[job.RankID]node.RankStatus
	history  map[job.RankID][]node.Phase // phases as they came, without repeats
	streams  []*asked                    // not answered yet
	bodies   map[string]*streamBody
	last     api.SyncRequest
	syncs    int
	leaseMS  int64
	prepull  []api.Prepull
	down     bool // answer 503
	inv      *node.Inventory
	onStatus func(node.RankStatus) // called with mu held
	secrets  map[job.RankID]*api.Secrets
	faults   []node.Fault // that were noted, in their order
}

func newFake(t testing.TB) *fakeController {
	f := &fakeController{
		t: t, changed: make(chan struct{}), version: 1, leaseMS: 60_000,
		desired: map[job.RankID]api.Order{}, status: map[job.RankID]node.RankStatus{},
		history: map[job.RankID][]node.Phase{}, bodies: map[string]*streamBody{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+api.PathNodeSync, f.sync)
	mux.HandleFunc("POST "+api.PathStream, f.stream)
	mux.HandleFunc("GET "+api.PathStream, f.join)
	mux.HandleFunc("GET "+api.PathStatus, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(api.Status{Version: "fake", You: "node", Role: "node"})
	})
	dir, err := os.MkdirTemp("", "gbatch-fake-") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", dir+"/s")
	if err != nil {
		t.Fatal(err)
	}
	f.srv = &httptest.Server{Listener: l, Config: &http.Server{Handler: mux}}
	f.srv.Start()
	f.srv.URL = "unix://" + dir + "/s"
	t.Cleanup(func() {
		f.srv.CloseClientConnections()
		f.srv.Close()
	})
	return f
}

func (f *fakeController) touch() {
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fakeController) sync(w http.ResponseWriter, r *http.Request) {
	var req api.SyncRequest
	// To its end: only then does the server notice that the node goes.
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &req)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	f.hear(req)
	deadline := time.NewTimer(time.Duration(req.WaitMS) * time.Millisecond)
	defer deadline.Stop()
	again := time.NewTicker(time.Second)
	defer again.Stop()
	streams := f.ask()
	for req.Seen == f.version && len(streams) == 0 && req.WaitMS > 0 && !f.down {
		changed := f.changed
		f.mu.Unlock()
		stop := false
		select {
		case <-changed:
		case <-again.C:
		case <-deadline.C:
			stop = true
		case <-r.Context().Done():
			stop = true
		}
		f.mu.Lock()
		if stop {
			break
		}
		streams = f.ask()
	}
	if f.down {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	_ = json.NewEncoder(w).Encode(f.answer(req, streams))
}

func (f *fakeController) hear(req api.SyncRequest) {
	f.syncs++
	if req.Inventory != nil {
		f.inv = req.Inventory
	}
	if req.NowMS < f.last.NowMS {
		return // overtaken by a newer message
	}
	for _, fault := range req.Faults {
		if fault.Seq > f.noted() {
			f.faults = append(f.faults, fault)
		}
	}
	same := req.NowMS == f.last.NowMS // which of the two is newer shows only in what they say
	f.last = req
	for _, s := range req.Ranks {
		if run := f.desired[s.ID].Run; run != nil && !node.SameJob(s.UUID, run.UUID) {
			continue // of another job
		}
		old := f.status[s.ID]
		if old.Phase != "" && !s.Phase.After(old.Phase) && old.Phase != s.Phase {
			continue // an older message
		}
		if same && old.Resize != nil && (s.Resize == nil || s.Resize.Seq < old.Resize.Seq) {
			continue // as well
		}
		f.status[s.ID] = s
		if old.Phase != s.Phase {
			f.history[s.ID] = append(f.history[s.ID], s.Phase)
		}
		if f.onStatus != nil {
			f.onStatus(s)
		}
	}
	f.touch()
}

// noted is the last of the faults for which the node was drained.
func (f *fakeController) noted() uint64 {
	if len(f.faults) == 0 {
		return 0
	}
	return f.faults[len(f.faults)-1].Seq
}

func (f *fakeController) answer(req api.SyncRequest, streams []api.StreamRequest) api.SyncResponse {
	resp := api.SyncResponse{Nonce: req.Nonce, Noted: f.noted(), Version: f.version, LeaseMS: f.leaseMS, Streams: streams, WantInventory: f.inv == nil}
	if req.Seen == f.version {
		return resp
	}
	resp.Changed, resp.Prepull = true, f.prepull
	listed, has := map[job.RankID]node.RankStatus{}, map[job.RankID]uint32{}
	for _, s := range req.Ranks {
		listed[s.ID], has[s.ID] = s, s.Secrets
	}
	for _, id := range slices.SortedFunc(maps.Keys(f.desired), compareRanks) {
		o := f.desired[id]
		if o.Run != nil {
			o.UUID = o.Run.UUID
		}
		if has, ok := listed[id]; ok && node.SameJob(has.UUID, o.UUID) {
			o.Run = nil
		}
		if s := f.secrets[id]; s != nil && s.Version != has[id] {
			o.Secrets = s
		}
		resp.Desired = append(resp.Desired, o)
	}
	return resp
}

// What tests do and ask.

func (f *fakeController) want(id job.RankID, run *api.RunOrder) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.desired[id] = api.Order{ID: id, Run: run}
	f.version++
	f.touch()
}

func (f *fakeController) stop(id job.RankID, s api.Stop) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.desired[id]
	o.Stop = &s
	f.desired[id] = o
	f.version++
	f.touch()
}

func (f *fakeController) drop(id job.RankID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.desired, id)
	f.version++
	f.touch()
}

func (f *fakeController) setDown(down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = down
	f.touch()
}

// patience is for what should take well under a second on an idle machine.
const patience = 2 * time.Minute

// await waits until ok says so of the controller's state.
func (f *fakeController) await(what string, ok func() bool) {
	f.t.Helper()
	deadline := time.After(patience)
	for {
		f.mu.Lock()
		good, changed := ok(), f.changed
		f.mu.Unlock()
		if good {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			f.mu.Lock()
			defer f.mu.Unlock()
			f.t.Fatalf("waited %v for %s; the node last said %.2000s", patience, what, toJSON(f.last))
		}
	}
}

// phase waits for a rank to come at least that far.
func (f *fakeController) phase(id job.RankID, p node.Phase) node.RankStatus {
	f.t.Helper()
	var s node.RankStatus
	f.await(fmt.Sprintf("%s to be %s", id, p), func() bool {
		s = f.status[id]
		return s.Phase == p || s.Phase.After(p)
	})
	return s
}

// exit waits for a rank's end.
func (f *fakeController) exit(id job.RankID) *node.Exit {
	f.t.Helper()
	s := f.phase(id, node.PhaseEnded)
	if s.Exit == nil {
		f.t.Fatalf("%s ended without an exit", id)
	}
	return s.Exit
}

// nudge makes the node ask again.
func (f *fakeController) nudge() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version++
	f.touch()
}

// holdsNothing waits until the node has forgotten everything. A node that
// forgets does not say so by itself: it is asked with each new version.
func (f *fakeController) holdsNothing() {
	f.t.Helper()
	until(f.t, "the node to hold nothing", func() bool {
		f.nudge()
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.last.Ranks) == 0 && f.last.Seen > 1
	})
}

// unhealthy is what the node last said of itself.
func (f *fakeController) unhealthy() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last.Unhealthy
}

// unlearn forgets what the node said of a rank.
func (f *fakeController) unlearn(id job.RankID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.status, id)
}

func toJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// until polls for what no message tells.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for %s", patience, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// begin lets a rank of a gang begin.
func (f *fakeController) begin(id job.RankID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.desired[id]
	o.Go = true
	f.desired[id] = o
	f.version++
	f.touch()
}
