package noded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/account"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/cores"
	"gbatch/internal/noded/devices"
	"gbatch/internal/noded/identity"
	"gbatch/internal/noded/images"
	"gbatch/internal/noded/storage"
	"gbatch/oci"
)

// Version of the program, set by the build.
var Version = "dev"

// Options are what an agent needs beside its configuration.
type Options struct {
	Log     *slog.Logger    // nil: slog.Default
	Version string          // of the program
	Devices devices.Devices // nil: what the machine has, or Config.GPU pretends; closed by Close

	onReach func(point string)
}

// Agent is the node daemon as a value: Open acquires, Run works until its
// context ends, Close lets go. Containers live on after all of them.
type Agent struct {
	cfg      config.Config
	log      *slog.Logger
	version  string
	instance string
	boot     string
	host     identity.Host

	locks      []*identity.Lock
	ctl        controller
	credential *identity.Credential
	images     *images.Holds
	data       *data
	storage    *storage.Roots
	cores      *cores.Map
	devices    devices.Devices
	network    *network
	contact    *contact
	health     *health

	ahead    *images.Ahead
	slots    chan struct{} // one for each container that may be starting
	measures *measures
	shims    oci.Pool // of those that may be waiting for a container
	leaseC   chan struct{}

	accounts *account.Accounts
	noMaps   error // why containers have the node's ids; nil: they have their users'

	ctx context.Context // of Run; set before anything that uses it starts
	wg  sync.WaitGroup  // all goroutines of Run

	mu            sync.Mutex // guards the ranks' shared parts too
	ranks         map[job.RankID]*rank
	order         ordering
	wantInventory bool

	newsMu   sync.Mutex
	newsAt   time.Time // when news are due; zero: there are none
	newsWake chan struct{}

	streamMu sync.Mutex
	streams  map[string]bool // by id

	keptMu    sync.Mutex
	kept      []keptRank // oldest first
	keptBytes int64

	onReach func(point string) // tests kill the daemon there

	metricsServer *listener // nil: nobody may read metrics
	jobMap        *jobMap

	isAway bool // poll loop only: the controller does not answer
}

// Open takes hold of the state directory, finds out what an earlier daemon
// left there, and removes what nobody needs. cfg has its defaults set and was
// checked. An error names what to do.
func Open(cfg config.Config, o Options) (*Agent, error) {
	a := &Agent{
		cfg: cfg, log: o.Log, version: o.Version, devices: o.Devices,
		storage: storage.New(&cfg), health: newHealth(&cfg),
		slots: make(chan struct{}, cfg.Launches), leaseC: make(chan struct{}, 1), newsWake: make(chan struct{}, 1),
		onReach:  o.onReach,
		measures: newMeasures(),
		jobMap:   newJobMap(cfg.Metrics.JobMap),
		ranks:    map[job.RankID]*rank{}, streams: map[string]bool{}, wantInventory: true,
	}
	a.shims.Max = cfg.Launches // no more can be taken at once
	if a.log == nil {
		a.log = slog.Default()
	}
	if err := a.open(o); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

func (a *Agent) open(o Options) error {
	if err := a.openState(); err != nil {
		return err
	}
	var err error
	if a.credential, err = identity.OpenCredential(&a.cfg); err != nil {
		return err
	}
	a.ctl = identity.Dial(&a.cfg, a.credential, o.Version)
	if a.boot, err = identity.BootID(); err != nil {
		return err
	}
	if a.host, err = identity.LookupHost(&a.cfg); err != nil {
		return err
	}
	if a.cores, err = cores.New(&a.cfg); err != nil {
		return err
	}
	if a.devices == nil {
		if a.devices, err = devices.Open(&a.cfg, a.cores.Topology.Nodes, a.log); err != nil {
			// What runs here must still be looked after: it is no error.
			a.log.Error("open GPUs", "error", err)
			a.health.lacks("GPUs: " + err.Error())
		}
	}
	a.contact = openContact(a.cfg.StateDir, a.boot, time.Duration(a.cfg.Lease), sinceBoot)
	if a.images, err = images.Open(&a.cfg, a.measures.pulled); err != nil {
		return err
	}
	a.ahead = images.NewAhead(a.images, images.AheadNode{
		Log: a.log, Pulling: a.pulling, Tell: func() { a.tell(newsPull) },
		Healthy: func() bool { return len(a.health.reasons()) == 0 },
	})
	if a.data, err = openData(&a.cfg, a.boot); err != nil {
		return err
	}
	if err := a.openAccounts(); err != nil {
		return err
	}
	if err := a.openNetwork(); err != nil {
		return err
	}
	if err := a.recover(); err != nil {
		return err
	}
	a.measures.reg.MustRegister(a.collector(), a.dcgmCollector())
	a.mapJobs()
	return a.listenMetrics()
}

// openState makes or opens the state directory and takes its locks: one for
// the directory, one for the node's name on this machine, by which everything
// on the host is found.
func (a *Agent) openState() error {
	for _, dir := range []string{a.cfg.StateDir, a.dirRanks(), identity.LockRun} {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return fmt.Errorf("make state directory: %w", err)
		}
	}
	for _, l := range []struct{ path, what string }{
		{filepath.Join(a.cfg.StateDir, "lock"), "state directory " + a.cfg.StateDir},
		{filepath.Join(identity.LockRun, a.cfg.Name), "node name " + a.cfg.Name},
	} {
		held, err := identity.TakeLock(l.path, l.what)
		if err != nil {
			return err
		}
		a.locks = append(a.locks, held)
	}
	var err error
	a.instance, err = identity.LoadInstance(a.cfg.StateDir)
	return err
}

// Run keeps the node equal to what the controller desires until ctx ends. It
// then waits for its goroutines; containers go on.
func (a *Agent) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.ctx = ctx
	a.log.Info("node daemon runs", "node", a.cfg.Name, "controller", a.cfg.Controller, "instance", a.instance, "ranks", len(a.ranks))
	a.resume()
	for _, loop := range []func(context.Context){a.pollLoop, a.newsLoop, a.leaseLoop, a.houseLoop, a.networkLoop, a.gpuLoop, a.sampleLoop, a.ahead.Run, a.metricsLoop} {
		a.wg.Go(func() { loop(ctx) }) // ends with ctx
	}
	<-ctx.Done()
	a.wg.Wait()
	return nil
}

// Running counts the ranks whose containers live.
func (a *Agent) Running() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, r := range a.ranks {
		if r.status.Exit == nil {
			n++
		}
	}
	return n
}

// Close lets go of the state directory. Run must have returned.
func (a *Agent) Close() error {
	a.shims.Close()
	var err error
	if a.metricsServer != nil {
		_ = a.metricsServer.ln.Close()
	}
	if a.images != nil {
		err = a.images.Close()
	}
	if c, ok := a.ctl.(*client.Client); ok {
		c.Close()
	}
	if a.devices != nil {
		err = errors.Join(err, a.devices.Close())
	}
	if len(a.locks) == 2 { // else another daemon may be using them
		a.host.RemoveGroups()
		err = errors.Join(err, a.jobMap.clear())
	}
	err = errors.Join(err, a.closeNetwork())
	for _, l := range a.locks {
		l.Close()
	}
	return err
}

// reached marks a point between two steps of a rank's life. Whatever the daemon
// has done by then, its death there must leave what the next one can settle.
func (a *Agent) reached(point string) {
	if a.onReach != nil {
		a.onReach(point)
	}
}

// houseLoop does what has to be done now and then.
func (a *Agent) houseLoop(ctx context.Context) {
	for client.Sleep(ctx, houseEvery) == nil {
		now := time.Now()
		a.pruneLogs(now)
		a.sweepData()
		done, err := a.images.Collect(now)
		if err != nil {
			a.log.Error("shrink image store", "error", err)
		}
		if len(done.Images) > 0 {
			a.log.Info("image store shrunk", "images", len(done.Images), "freed", config.FormatBytes(done.Freed), "kept", config.FormatBytes(done.Kept))
		}
	}
}

// houseEvery is how often logs and images are looked through.
const houseEvery = 5 * time.Minute

func (a *Agent) dirRanks() string { return filepath.Join(a.cfg.StateDir, "ranks") }

// containerID is unique on the machine.
func (a *Agent) containerID(id job.RankID) string { return a.cfg.Name + "." + id.String() }

// pulling says whether a rank waits for its image.
func (a *Agent) pulling() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.ranks {
		if r.status.Phase == node.PhasePulling {
			return true
		}
	}
	return false
}
