package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/contact"
	"gbatch/internal/noded/identity"
	"gbatch/oci/lease"
)

// machine is a node: what outlives its daemon, and the daemon while it runs.
type machine struct {
	w     *world
	name  string
	ahead atomic.Int64 // its wall clock, of the true time

	mu       sync.Mutex
	boots    int
	instance int           // of the disk that it has
	disks    int           // it has had
	made     int           // images of it
	told     time.Duration // of a rank, last
	images   []putBack
	bootedAt time.Duration // by the true time
	off      int           // faults that keep it, or its daemon, away
	disk     *nodeDisk
	files    map[string][]written
	lease    lease.Lease          // as its file says
	ranks    map[job.RankID]*rank // on its disk
	runs     map[job.RankID]*container
	power    context.CancelFunc // ends the machine
	machine  context.Context
	daemon   *daemon // nil: none runs
}

// daemon is one start of gnoded: the production's exchange, with a model of the node behind it.
type daemon struct {
	m       *machine
	ctx     context.Context
	kill    context.CancelFunc
	gone    chan struct{} // closed when it is
	contact *contact.Contact
	dead    bool // guarded by the machine's mu
}

func newMachine(w *world, name string) *machine {
	dir := filepath.Join(w.dir, name)
	disk := &nodeDisk{dir: dir, platter: newPlatter(dir, w.plant.leavesSync), harmed: map[string]bool{}}
	return &machine{w: w, name: name, disk: disk, files: map[string][]written{}, ranks: map[job.RankID]*rank{}, runs: map[job.RankID]*container{}}
}

// steady is the clock that runs from boot.
func (m *machine) steady() time.Duration {
	if m.w.plant.wallLease {
		return m.w.now() + 20*time.Hour + time.Duration(m.ahead.Load())
	}
	return m.w.now() - m.bootedAt + time.Minute
}

func (m *machine) wall() time.Time { return time.Now().Add(time.Duration(m.ahead.Load())) }

// wallMS is by how much the one is ahead of the other, as lease.WallMS.
func (m *machine) wallMS() int64 { return m.wall().UnixMilli() - m.steady().Milliseconds() }

// Read and Write are the files of the exchange.
func (m *machine) Read(path string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if past := m.files[path]; len(past) > 0 {
		return past[len(past)-1].text, nil
	}
	return nil, fs.ErrNotExist
}

func (m *machine) Write(path string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wrote(path, data)
	if path == "contact" {
		m.lease = lease.Lease{}
		_ = json.Unmarshal(data, &m.lease) // what cannot be read says nothing
	}
	return nil
}

// boot starts the machine and its daemon.
func (m *machine) boot() {
	m.mu.Lock()
	if m.off > 0 || m.w.ctx.Err() != nil {
		m.mu.Unlock()
		return
	}
	m.boots++
	m.bootedAt = m.w.now()
	m.must(m.disk.begin(m.boots))
	m.machine, m.power = context.WithCancel(context.Background())
	ctx := m.machine
	m.mu.Unlock()
	m.w.wg.Go(func() { m.shims(ctx) })
	m.start()
}

// start begins a daemon.
func (m *machine) start() {
	m.mu.Lock()
	if m.off > 0 || m.daemon != nil || m.machine.Err() != nil || m.w.ctx.Err() != nil {
		m.mu.Unlock()
		return
	}
	d := &daemon{m: m, gone: make(chan struct{})}
	d.ctx, d.kill = context.WithCancel(m.machine)
	m.recover()
	m.daemon = d
	boot := fmt.Sprintf("%s-boot-%d", m.name, m.boots)
	m.mu.Unlock()
	credential, err := identity.OpenCredential(&config.Config{Name: m.name, StateDir: m.w.dir})
	if err != nil {
		panic(err) // it opens no file
	}
	d.contact = contact.Open(contact.Options{
		Name: m.name, File: "contact", Records: "records", Boot: boot, Lease: time.Minute, Controller: m, Credential: credential, Node: d, Log: m.w.log,
		Machine: contact.Machine{Steady: m.steady, Wall: m.wall, Files: m, Draw: func(loop string, most time.Duration) time.Duration {
			return between(m.w.draw("pause", m.name, loop), 0, most-1)
		}},
	})
	m.w.note("daemon of %s runs, with %d ranks", m.name, len(m.ranks))
	go func() { // ends with the daemon; who kills it waits
		defer close(d.gone)
		m.resume(d)
		d.contact.Run(d.ctx)
	}()
}

// killDaemon ends the daemon, and starts another one later. What runs goes on.
func (m *machine) killDaemon(later time.Duration) {
	m.mu.Lock()
	m.off++
	m.mu.Unlock()
	m.endDaemon()
	m.comeBack(later)
}

// flip ends the daemon, and turns a bit of its disk around before another one starts.
func (m *machine) flip(later time.Duration) {
	m.mu.Lock()
	m.off++
	m.mu.Unlock()
	m.endDaemon()
	m.mu.Lock()
	file, err := m.disk.flip(m.w.draw("flip", m.name))
	m.must(err)
	m.w.note("flipped a bit of %s of %s", file, m.name)
	m.mu.Unlock()
	m.comeBack(later)
}

// fill has the disk be full for a while.
func (m *machine) fill(lasts time.Duration) {
	add := func(by int) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.disk.full += by
	}
	add(1)
	_ = m.w.sleep(lasts)
	add(-1)
}

// comeBack starts the daemon later, and the machine before it where that is off: if
// nothing else keeps it off by then.
func (m *machine) comeBack(later time.Duration) {
	_ = m.w.sleep(later)
	m.mu.Lock()
	m.off--
	on := m.machine.Err() == nil
	m.mu.Unlock()
	if on {
		m.start()
	} else {
		m.boot()
	}
}

func (m *machine) endDaemon() {
	m.mu.Lock()
	d := m.daemon
	m.daemon = nil
	if d != nil {
		d.dead = true
	}
	m.mu.Unlock()
	if d != nil {
		d.kill()
		<-d.gone
		m.w.note("daemon of %s ended", m.name)
	}
}

// crash ends the machine, and starts it again later. Meanwhile it may get another disk.
func (m *machine) crash(later time.Duration, other func()) {
	m.mu.Lock()
	m.off++
	m.mu.Unlock()
	m.end()
	if other != nil {
		m.mu.Lock()
		other()
		m.mu.Unlock()
	}
	m.comeBack(later)
}

// empty has the machine be another one of the same name.
func (m *machine) empty() {
	runsAlone := slices.ContainsFunc(sorted(m.ranks), func(id job.RankID) bool { return m.ranks[id].order.Alone && m.ranks[id].exit == nil })
	if m.w.draw("disk", m.name).IntN(3) > 0 || runsAlone { // else it has the id of the old one, as of an image of that; nobody believes it to be the one on which a job runs on
		m.disks++
		m.instance = m.disks
	}
	m.must(os.RemoveAll(m.disk.dir))
	m.disk.harmed = map[string]bool{}
	m.lease, m.files, m.ranks = lease.Lease{}, map[string][]written{}, map[job.RankID]*rank{}
}

func (m *machine) end() {
	m.endDaemon()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.power()
	for _, id := range sorted(m.runs) {
		m.runs[id].stop()
		m.w.audit.crashed(m, m.runs[id])
	}
	m.runs = map[job.RankID]*container{}
	m.cut()
	m.files = m.flushed(m.w.draw("flushed", m.name))
	if m.machine.Err() == nil {
		panic("the machine is on")
	}
}

// cut is what the end of its power does to its disk.
func (m *machine) cut() {
	torn, err := m.disk.cut(m.w.draw("cut", m.name))
	m.must(err)
	if torn {
		m.w.audit.saw("journals of nodes torn")
	}
}

// shut ends the machine for good.
func (m *machine) shut() {
	m.mu.Lock()
	m.off++
	m.mu.Unlock()
	m.end()
	platters.Delete(m.disk.dir)
}

// shims end what runs and needs a lease when that is over, whether or not there is a daemon.
func (m *machine) shims(ctx context.Context) {
	for sleep(ctx, time.Second) == nil {
		m.mu.Lock()
		if l := m.lease; l.UntilMS > 0 && m.steady().Milliseconds() > l.UntilMS && !m.w.plant.noShims && ctx.Err() == nil {
			for _, id := range sorted(m.runs) {
				if c := m.runs[id]; !c.alone {
					m.signal(c, stop{signal: "KILL", reason: job.NodeFail, text: "the lease is over"})
				}
			}
		}
		m.mu.Unlock()
	}
}

// inventory is what every node has.
func (m *machine) inventory() *node.Inventory {
	v := &node.Inventory{Hostname: m.name, Cluster: 1, CPUs: 16, MemBytes: 64 << 30, Bridge: true, Gang: true, Together: true, Address: "10.0.0.1"}
	for i := range 4 {
		v.GPUs = append(v.GPUs, node.GPU{UUID: fmt.Sprintf("GPU-%s-%d", m.name, i), Index: i, Model: "H100", MemBytes: 80 << 30, NUMA: -1})
	}
	return v
}

// Report is what the node says of itself.
func (d *daemon) Report() *api.SyncRequest {
	m := d.m
	m.mu.Lock()
	defer m.mu.Unlock()
	req := &api.SyncRequest{Instance: fmt.Sprintf("%s-disk-%d", m.name, m.instance), Boot: fmt.Sprintf("%s-boot-%d", m.name, m.boots), InventoryHash: "all", Inventory: m.inventory(), Checked: true}
	if m.disk.full > 0 {
		req.Unhealthy = []string{"disk full: 0 MiB free in the state directory"}
	}
	for _, id := range sorted(m.ranks) {
		if r := m.ranks[id]; !r.released {
			req.Ranks = append(req.Ranks, m.status(r))
		}
	}
	return req
}

func (d *daemon) Noted(uint64)                              {}
func (d *daemon) OrderReboot(uint64)                        {}
func (d *daemon) Stream(context.Context, api.StreamRequest) {}
