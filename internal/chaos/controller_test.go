package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/control/effects"
	"gbatch/internal/control/standby"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/backup"
	"gbatch/internal/ctld/controllers"
	"gbatch/internal/ctld/follow"
	"gbatch/internal/ctld/ids"
	"gbatch/internal/ctld/jobs"
	"gbatch/internal/ctld/jobstore"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/ctld/meter"
	"gbatch/internal/ctld/nodes"
	"gbatch/internal/ctld/samples"
	"gbatch/internal/ctld/site"
	"gbatch/internal/ctld/streams"
	"gbatch/internal/replica"
	"gbatch/internal/state"
	"gbatch/internal/store"
	"gbatch/sched"
)

// machineOfController is where the controller runs. Its disk outlives processes.
type machineOfController struct {
	w      *world
	conf   site.Config
	ahead  atomic.Int64 // its wall clock, of the true time
	closed sync.WaitGroup

	mu      sync.Mutex
	disk    *disk
	boot    int
	off     int      // faults that keep it away
	opening bool     // one begins
	proc    *process // nil: none runs
}

// process is one start of the controller, put together as ctld.Server does it.
type process struct {
	w      *world
	ctx    context.Context // ends with it
	kill   context.CancelFunc
	disk   *disk
	store  *store.Store
	ctl    *control.Controller
	loop   *loop.Loop
	jobs   *jobstore.Reader
	nodes  *nodes.Exchange
	submit *jobs.Submissions
	ids    *ids.Book
	lead   *replica.Lead // nil: it is the only controller
	others *controllers.Members
}

func newController(w *world) *machineOfController {
	c := &machineOfController{w: w, disk: newDisk(), conf: site.Default()}
	c.conf.Nodes = site.Timing{Suspect: 30, Timeout: 120, Reboot: 600}
	c.conf.Limits.DefaultMin, c.conf.Limits.DefaultDuration = 60, 3600
	c.conf.Limits.MaxDuration = 7200
	c.conf.Policy.QOS = map[string]site.QOS{alone: {RunsAlone: true}}
	if w.plant.site != nil {
		w.plant.site(&c.conf)
	}
	w.audit.lease, w.audit.suspect = c.conf.Lease(), time.Duration(c.conf.Nodes.Suspect)*time.Second
	c.disk.unsafe = w.plant.unsynced
	return c
}

// readings are the machine's clocks.
func (c *machineOfController) readings() loop.Readings {
	boot := c.w.now()
	read := func() (time.Time, time.Duration) {
		return time.Now().Add(time.Duration(c.ahead.Load())).Round(0), c.w.now() - boot + time.Hour
	}
	if c.boot == 0 || c.w.plant.readings == nil {
		boot = 0 // only the process ends: the machine runs on
	}
	if c.w.plant.readings != nil {
		return c.w.plant.readings(read)
	}
	return read
}

// start begins a process. No lock is held while the time of its disk passes: what waits for a lock
// keeps the bubble's clock from going on.
func (c *machineOfController) start() {
	c.mu.Lock()
	if c.proc != nil || c.opening || c.off > 0 || c.w.ctx.Err() != nil {
		c.mu.Unlock()
		return
	}
	c.opening = true
	c.mu.Unlock()
	p, err := c.open()
	if err != nil {
		c.w.audit.violation("the controller does not start: %v", err)
		return
	}
	c.w.note("controller runs: start %d, %d jobs", p.store.Epoch(), p.loop.View().Len())
	c.closed.Go(func() {
		err := p.loop.Run(settled{p.ctx, c.w})
		if p.ctx.Err() == nil {
			c.w.audit.violation("the controller ended: %v", err)
		}
		if err := p.store.Close(); err != nil {
			c.w.note("store closed: %v", err)
		}
	})
	_ = c.w.sleep(time.Millisecond) // not in the loop's first turn, or after it
	for i := range c.w.clients {    // so that nobody is given ids while others wait for theirs
		if _, err := p.ids.Of(fmt.Sprintf("user%d", i), nil); err != nil {
			c.w.audit.violation("ids of a user: %v", err)
		}
	}
	c.w.audit.started(p)
	c.mu.Lock()
	c.proc, c.opening = p, false
	off := c.off > 0
	c.mu.Unlock()
	if off { // it was to be killed meanwhile
		c.stop(100)
	}
}

func (c *machineOfController) open() (p *process, err error) {
	st, err := store.Open(store.Config{Dir: "db", FS: c.disk, Log: c.w.log})
	if err != nil {
		return nil, err
	}
	p, err = c.openOn(st, loop.OpenClockBy(filepath.Join(c.w.dir, "clock"), "boot", c.readings(), c.w.log), nil, nil)
	if err != nil {
		err = errors.Join(err, st.Close())
	}
	return p, err
}

// openOn puts a process together that stores there. Lead is of one of several, which has followed with some jobs.
func (c *machineOfController) openOn(st *store.Store, clock *loop.Clock, lead *replica.Lead, followed *follow.Jobs) (p *process, err error) {
	w := c.w
	p = &process{w: w, disk: c.disk, store: st, lead: lead}
	p.ctx, p.kill = context.WithCancel(context.Background())
	rules, err := c.conf.Rules()
	if err != nil {
		return nil, err
	}
	if err := p.fill(rules, followed); err != nil {
		return nil, err
	}
	now := clock.Now()
	if err := p.ctl.Loaded(now - w.plant.impatient); err != nil {
		return nil, err
	}
	if _, err := backup.Loaded(p.ctl, p.store, now); err != nil {
		return nil, err
	}
	if err := p.ctl.Check(); err != nil {
		return nil, fmt.Errorf("the stored state contradicts itself: %w", err)
	}
	var confirm func() error
	var published func()
	if lead != nil {
		confirm, published = lead.Confirm, func() { followed.Published(lead.Through()) }
	}
	meters := meter.New()
	p.loop, err = loop.New(loop.Config{Controller: p.ctl, Store: p.store, Clock: clock, Meters: meters, Reserve: func() uint64 { return 64 << 20 }, Confirm: confirm, Published: published, Log: w.log}, now)
	if err != nil {
		return nil, err
	}
	p.loop.Hooks = checks{w, p}
	return p, p.handlers(c, meters)
}

// fill makes a controller of what is stored.
func (p *process) fill(rules control.Config, followed *follow.Jobs) (err error) {
	if followed == nil || p.w.plant.load != nil {
		if p.ctl, err = control.New(rules, p.store.Epoch()); err != nil {
			return err
		}
		take := p.ctl.Load
		if p.w.plant.load != nil {
			take = p.w.plant.load(p.ctl)
		}
		return p.store.Load(take)
	}
	jobs, _, err := followed.Take(p.store)
	if err != nil {
		return err
	}
	if why, err := differ(jobs, p.store); err != nil {
		return err
	} else if why != "" {
		p.w.audit.violation("one that followed has other jobs than its store: %s", why)
	}
	if p.ctl, err = control.Of(rules, p.store.Epoch(), jobs); err != nil {
		return err
	}
	return p.store.LoadBeside(p.ctl.Load)
}

// differ says how jobs that were kept in step with a store are others than it has; empty: they are the same.
func differ(jobs *standby.Jobs, st *store.Store) (why string, err error) {
	left := 0
	for range jobs.Table.All() {
		left++
	}
	err = st.All(state.KindJob, func(r state.Record) error {
		left--
		j := jobs.Table.Get(r.Job)
		if j == nil {
			why = fmt.Sprintf("it lacks job %d", r.Job)
			return nil
		}
		text := j.Encode()
		if !bytes.Equal(text, r.Value) { // a record may be written in another way
			stored := standby.New()
			if err := stored.Put(r.Job, r.Value); err != nil {
				return err
			}
			if want := stored.Table.Get(r.Job).Encode(); !bytes.Equal(text, want) {
				why = fmt.Sprintf("%s\nstored: %s", text, want)
			}
		}
		if _, waits := jobs.Sched.Waiting(sched.JobID(r.Job)); waits != (standby.Waits(j) && j.Parent == 0) || jobs.ByUUID[j.UUID] != r.Job {
			why = fmt.Sprintf("job %d waits: %t; the number of its UUID is %d", r.Job, waits, jobs.ByUUID[j.UUID])
		}
		return nil
	})
	if why == "" && left != 0 {
		why = fmt.Sprintf("it has %d more", left)
	}
	return why, err
}

// handlers are those of nodes and of submissions.
func (p *process) handlers(c *machineOfController, meters *meter.Meters) error {
	conf := func() *site.Config { return &c.conf }
	book, err := ids.Open(p.store, p.loop, func() uint32 { return c.conf.IDsFrom })
	if err != nil {
		return err
	}
	p.ids = book
	p.jobs = &jobstore.Reader{View: p.loop.View, Store: p.store}
	p.nodes = &nodes.Exchange{
		Conf: conf, Loop: p.loop, Jobs: p.jobs, Streams: streams.NewHub(), Samples: &samples.Samples{}, Skews: samples.NewSkews(p.w.log),
		UID: func(string) *uint32 { return nil }, IDs: book, Key: []byte("key of the site"), Log: p.w.log,
	}
	p.submit = &jobs.Submissions{
		Conf: conf, Rights: &access.Rights{Conf: conf, People: access.NewPeople(p.w.log)}, Loop: p.loop, Jobs: p.jobs, Meters: meters,
		HasTree: func(context.Context, string, string) (bool, error) { return false, nil },
	}
	return nil
}

// checks look at the controller after each step, in its own goroutine.
type checks struct {
	w *world
	p *process
}

func (c checks) Records(moved []effects.Moved) []state.Record {
	if len(moved) > 0 {
		c.w.trace("a turn of start %d moves %d jobs", c.p.store.Epoch(), len(moved))
	}
	c.w.audit.step(c.p)
	return nil
}

func (c checks) Take([]state.Record) {}

// stop ends the process as a kill does; unsynced is how much of what was not synced is kept, in percent.
func (c *machineOfController) stop(unsynced int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.proc == nil {
		return
	}
	if c.w.ctx.Err() == nil { // else nobody reads it again
		c.disk = c.disk.after(unsynced)
	}
	c.proc.disk.left.Store(true)
	c.proc.kill()
	c.proc = nil
	c.w.note("controller killed, keeps %d percent of what is not synced", unsynced)
}

// restart kills the process, and begins another one later.
func (c *machineOfController) restart(unsynced int, later time.Duration) {
	c.mu.Lock()
	c.off++
	c.mu.Unlock()
	c.stop(unsynced)
	_ = c.w.sleep(later)
	c.mu.Lock()
	c.off--
	c.mu.Unlock()
	c.start()
}

func (c *machineOfController) running() *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.proc
}

// unended names a job that has not ended; empty: all have.
func (w *world) unended() string {
	p := w.leading()
	if p == nil {
		return "no controller runs"
	}
	v := p.loop.View()
	for j := range v.All() {
		if !j.State.Final() {
			return fmt.Sprintf("job %d never ends: it is %s: %s", j.Number, j.State, v.Waiting(j))
		}
	}
	return ""
}

// leading is the process of the controller, of several of the one that leads; nil: there is none.
func (w *world) leading() *process {
	if w.ctl != nil {
		return w.ctl.running()
	}
	for _, m := range w.members {
		if p := m.running(); p != nil && p.lead.Fresh(w.ctx) == nil {
			return p
		}
	}
	return nil
}

var errDown = errors.New("connection refused")

// sync is a node's request as the controller's process takes it.
func (p *process) sync(ctx context.Context, name string, req []byte) (*api.SyncResponse, error) {
	in := &nodes.SyncInput{Name: name}
	if err := json.Unmarshal(req, &in.Body); err != nil {
		return nil, err
	}
	if taken := p.w.plant.taken; taken != nil {
		taken(&in.Body)
	}
	ctx, end := p.bounded(ctx)
	defer end()
	resp, err := p.nodes.Sync(access.WithCaller(ctx, access.Identity{User: "node:" + name, Role: access.RoleNode, Node: name}, "sync"), in)
	if p.ctx.Err() != nil {
		return nil, errDown // who would have answered is dead
	}
	return resp, err
}

// bounded ends with the process, too.
func (p *process) bounded(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(p.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// user is a context in which somebody asks.
func (p *process) user(ctx context.Context, name string) context.Context {
	return access.WithCaller(ctx, access.Identity{User: name, Role: access.RoleUser}, "test")
}

// mayRun is how long a job may run.
const mayRun = 20 * time.Minute

// wish is a job that somebody submits.
type wish struct {
	name  string
	gpus  int
	again bool // it may be started again
	nodes int
	tasks int // of an array; 0: it is none
	alone bool
}

// alone is the class of service of jobs that run on where their node loses contact.
const alone = "alone"

// document is a job that runs for so long and ends so as its name says.
func document(d wish) json.RawMessage {
	more := ""
	if d.nodes > 1 && d.again { // they may be on one node
		more = fmt.Sprintf(`,"ranksPerNode":%d`, d.nodes)
	}
	if d.tasks > 0 {
		more += fmt.Sprintf(`,"tasks":{"indexes":"0-%d"}`, d.tasks-1)
	}
	if d.alone {
		more += fmt.Sprintf(`,"qos":%q`, alone)
	}
	return json.RawMessage(fmt.Sprintf(`{"name":%q,"request":{"resources":{"gpus":%d,"cpus":2,"cpuMemoryGb":1},"docker":{"image":"busybox:1","command":"true"},"scheduling":{"restartable":%t,"maxDuration":"%d minutes"}},"gbatch":{"nodes":%d%s}}`, d.name, d.gpus, d.again, int(mayRun.Minutes()), d.nodes, more))
}
