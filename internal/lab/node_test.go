package lab

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
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

// machine is a node whose programs are timers.
type machine struct {
	s     *site
	name  string
	model string
	gpus  int
	cores int

	ctl        *client.Client
	credential *identity.Credential

	mu     sync.Mutex
	boot   int
	up     time.Time
	power  context.CancelFunc // nil: it is off
	off    chan struct{}      // closed when its daemon has ended
	talk   *contact.Contact
	disk   sync.Mutex // guards files
	files  map[string][]byte
	ranks  map[job.RankID]*rank
	unfit  []string // why it takes no jobs
	reboot uint64   // the order that was followed last
}

// rank is one that the node has.
type rank struct {
	node.RankStatus
	order api.RunOrder
	goes  bool // of a gang: its program may begin
	stop  *api.Stop
	run   *run // what truly happens of it
}

// join makes a node known by a token in a file, and starts it.
func (s *site) join(m *machine, token string) {
	s.t.Helper()
	m.s, m.files, m.ranks = s, map[string][]byte{}, map[job.RankID]*rank{}
	cfg := &config.Config{Name: m.name, Controller: "https://192.0.2.1:7077#" + s.pin, StateDir: filepath.Join(s.dir, m.name), JoinTokenFile: token}
	err := os.MkdirAll(cfg.StateDir, 0o700)
	if err == nil {
		m.credential, err = identity.OpenCredential(cfg)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	m.ctl = identity.Dial(cfg, m.credential, "lab")
	m.ctl.Transport = s.byNetwork(fmt.Sprintf("192.0.2.%d:1000", 10+len(s.nodes)), m.ctl.Certificate)
	s.nodes = append(s.nodes, m)
	m.start()
}

// start switches the machine on. What ran before its last end has ended with it.
func (m *machine) start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.power != nil {
		return
	}
	m.boot++
	m.up = time.Now()
	for _, r := range m.ranks {
		m.end(r, node.Exit{Code: 137, Reason: job.NodeFail, Message: "the machine was restarted"})
	}
	var ctx context.Context
	ctx, m.power = context.WithCancel(context.Background())
	up, off := m.up, make(chan struct{})
	m.off = off
	m.talk = contact.Open(contact.Options{
		Name: m.name, Address: "the lab's", File: "contact", Records: "records", Boot: m.bootID(), Lease: time.Minute, Controller: m.ctl, Credential: m.credential,
		Node: m, Log: slog.New(slog.DiscardHandler), Machine: contact.Machine{Files: m, Steady: func() time.Duration { return time.Since(up) + time.Minute }},
	})
	talk := m.talk
	go func() { // ends with the machine; who switches it off waits
		defer close(off)
		talk.Run(ctx)
	}()
}

// cut switches the machine off, as a loss of its power does.
func (m *machine) cut() {
	m.mu.Lock()
	power, off := m.power, m.off
	m.power = nil
	m.s.truth.off(m.name)
	for _, r := range m.ranks {
		m.s.truth.over(r.run, -1)
	}
	m.mu.Unlock()
	if power != nil {
		power()
		<-off
		m.ctl.Close()
	}
}

func (m *machine) bootID() string { return fmt.Sprintf("%s-boot-%d", m.name, m.boot) }

// Read and Write are the machine's small files.
func (m *machine) Read(path string) ([]byte, error) {
	m.disk.Lock()
	defer m.disk.Unlock()
	if b, ok := m.files[path]; ok {
		return b, nil
	}
	return nil, fs.ErrNotExist
}

func (m *machine) Write(path string, data []byte) error {
	m.disk.Lock()
	defer m.disk.Unlock()
	m.files[path] = data
	return nil
}

// sick has the node say that it takes no jobs, or that it does again.
func (m *machine) sick(reasons ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unfit = reasons
	m.talk.Tell(contact.AtOnce)
}

// Report is what the node says of itself.
func (m *machine) Report() *api.SyncRequest {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := &node.Inventory{Hostname: m.name, Cluster: 1, Bridge: true, Gang: true, CPUs: m.cores, MemBytes: 512 << 30, Storage: []node.Root{}}
	for i := range m.gpus {
		v.GPUs = append(v.GPUs, node.GPU{UUID: fmt.Sprintf("GPU-%s-%d", m.name, i), Index: i, Model: m.model, MemBytes: 80 << 30, ComputeCap: 90})
	}
	req := &api.SyncRequest{Instance: "disk-" + m.name, Boot: m.bootID(), Inventory: v, InventoryHash: "as ever", Unhealthy: m.unfit, Checked: true, Ranks: []node.RankStatus{}}
	for _, r := range m.ranks {
		req.Ranks = append(req.Ranks, r.RankStatus)
	}
	return req
}

// Desire makes the desired set true.
func (m *machine) Desire(resp *api.SyncResponse) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.power == nil {
		return
	}
	wanted := map[job.RankID]bool{}
	for _, o := range resp.Desired {
		wanted[o.ID] = true
		r := m.ranks[o.ID]
		switch {
		case r == nil && o.Run == nil:
			m.talk.Tell(contact.AtOnce)
			continue
		case r == nil:
			r = m.take(o)
		}
		if r.goes = r.goes || o.Go; r.goes && r.Phase == node.PhaseReady {
			m.begin(r)
		}
		if o.Stop != nil && r.stop == nil {
			r.stop = o.Stop
			m.after(2*time.Second, r, func() {
				m.end(r, node.Exit{Code: 143, Signal: 15, Reason: r.stop.Reason, Message: r.stop.Text})
			})
		}
	}
	maps.DeleteFunc(m.ranks, func(id job.RankID, r *rank) bool {
		if !wanted[id] {
			m.s.truth.over(r.run, -1)
		}
		return !wanted[id]
	})
}

// after does something with a rank later, if the machine still has it.
func (m *machine) after(d time.Duration, r *rank, do func()) {
	boot := m.boot
	time.AfterFunc(d, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.power != nil && m.boot == boot && m.ranks[r.ID] == r && r.Phase != node.PhaseEnded {
			do()
		}
	})
}

// take begins with a rank: its image comes first.
func (m *machine) take(o api.Order) *rank {
	r := &rank{RankStatus: node.RankStatus{ID: o.ID, UUID: o.UUID, Phase: node.PhaseAccepted}, order: *o.Run, goes: o.Go}
	r.run = m.s.truth.assigned(m, r)
	m.ranks[o.ID] = r
	h := fnv.New32a()
	fmt.Fprint(h, m.name, o.ID)
	m.after(time.Duration(3+h.Sum32()%40)*time.Second, r, func() {
		if r.Image = "sha256:" + strings.Repeat("a", 64); o.Run.Ranks > 1 && !r.goes {
			r.Phase = node.PhaseReady
			m.talk.Tell(contact.WithinProgress)
			return
		}
		m.begin(r)
	})
	m.talk.Tell(contact.WithinProgress)
	return r
}

// begin starts the program, whose length and end the job's name says: rSECONDS-xCODE at its end.
func (m *machine) begin(r *rank) {
	r.Phase, r.StartedMS = node.PhaseRunning, time.Now().UnixMilli()
	m.s.truth.begun(r.run)
	seconds, code := 60, 0
	if _, program, found := strings.Cut(r.order.Spec.Name, "-r"); found {
		if _, err := fmt.Sscanf(program, "%d-x%d", &seconds, &code); err != nil {
			m.s.t.Errorf("%s begins %q", m.name, r.order.Spec.Name)
		}
	}
	runs := time.Duration(seconds) * time.Second
	if a := r.order.Array; a != nil {
		runs += time.Duration(r.ID.Job%7) * time.Minute // tasks differ
	}
	m.after(runs, r, func() {
		e := node.Exit{Code: code}
		if code != 0 {
			e.Reason = job.ExitCode
		}
		m.end(r, e)
	})
	if l := time.Duration(r.order.LimitMS) * time.Millisecond; l > 0 {
		m.after(l+time.Second, r, func() {
			m.end(r, node.Exit{Code: 143, Signal: 15, Reason: job.MaxRuntime, Message: "it ran for as long as it may"})
		})
	}
	m.talk.Tell(contact.WithinRunning)
}

// end writes down how a rank ended.
func (m *machine) end(r *rank, e node.Exit) {
	if r.Phase == node.PhaseEnded {
		return
	}
	e.StartedMS, e.EndedMS = r.StartedMS, time.Now().UnixMilli()
	r.Phase, r.Exit = node.PhaseEnded, &e
	code := e.Code
	if e.Reason == job.NodeFail {
		code = -1
	}
	m.s.truth.over(r.run, code)
	m.talk.Tell(contact.AtOnce)
}

// LeaseOver ends all ranks: the controller may give them to other nodes.
func (m *machine) LeaseOver(time.Duration, time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.ranks {
		m.end(r, node.Exit{Code: 137, Signal: 9, Reason: job.NodeFail, Message: "lost contact with the controller"})
	}
}

// OrderReboot reboots the machine, once for each order.
func (m *machine) OrderReboot(seq uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if seq == 0 || seq == m.reboot || len(m.ranks) > 0 {
		return
	}
	m.reboot = seq
	go func() { // ends within minutes
		m.cut()
		time.Sleep(4 * time.Minute)
		m.start()
	}()
}

// Stream refuses: timers print nothing.
func (m *machine) Stream(ctx context.Context, req api.StreamRequest) {
	go func() { // ends with its answer
		_ = m.ctl.FailStream(ctx, req.ID, "a machine of the lab has no containers")
	}()
}

func (m *machine) Noted(uint64) {}

var errNoCommand = errors.New("there is no such command")
