package noded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/internal/noded/account"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/contact"
	"gbatch/internal/noded/cores"
	"gbatch/internal/noded/data"
	"gbatch/internal/noded/devices"
	"gbatch/internal/noded/disk"
	"gbatch/internal/noded/exporter"
	"gbatch/internal/noded/faults"
	"gbatch/internal/noded/hooks"
	"gbatch/internal/noded/identity"
	"gbatch/internal/noded/images"
	"gbatch/internal/noded/inside"
	"gbatch/internal/noded/keep"
	"gbatch/internal/noded/network"
	"gbatch/internal/noded/peers"
	"gbatch/internal/noded/rank"
	"gbatch/internal/noded/reason"
	"gbatch/internal/noded/record"
	"gbatch/internal/noded/storage"
	"gbatch/internal/noded/streams"
	"gbatch/internal/pki"
	"gbatch/oci"
	"gbatch/oci/apparmor"
	"gbatch/oci/atomicfile"
	"gbatch/oci/boot"
	"gbatch/oci/lease"
	"gbatch/oci/overlay"
	"gbatch/oci/runtimes"
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
	cfg        config.Config
	log        *slog.Logger
	version    string
	instance   string
	host       identity.Host
	locks      []*identity.Lock
	locked     bool // it has all of them
	controller *client.Client

	images   *images.Holds
	sharing  *peers.Server // nil: image layers are not shared with other nodes
	toNodes  *pki.NodeTLS  // likewise
	ahead    *images.Ahead
	data     *data.Data
	disk     *disk.Disk
	cores    *cores.Map
	devices  devices.Devices
	network  *network.Network
	contact  *contact.Contact
	streams  *streams.Streams
	exporter *exporter.Exporter
	counters *exporter.Counters
	health   *health
	faults   *faults.Faults
	hooks    *hooks.Hooks
	kept     *keptLogs
	keeper   *keep.Keeper  // of logs, elsewhere
	guard    *lease.Guard  // ends containers whose lease is over when nobody else does
	shims    oci.Pool      // of those that may be waiting for a container
	homes    rank.Homes    // containers that tasks of an array run in one after the other
	past     record.Past   // of tasks that ran there
	slots    chan struct{} // one for each container that may be starting
	node     *rank.Node    // the parts of these that ranks see

	accounts *account.Accounts
	appArmor string // the profile of containers; empty: none
	places   *reason.Places
	noMaps   error                       // why containers have the node's ids; nil: they have their users'
	runtimes map[string]runtimes.Runtime // that jobs may ask for

	ctx context.Context // of Run; set before anything that uses it starts
	wg  sync.WaitGroup  // all goroutines of Run

	mu    sync.Mutex
	ranks map[job.RankID]*rank.Rank
	later map[job.RankID]api.Order // that wait until a rank of another job with this number is gone
}

// Open takes hold of the state directory, finds out what an earlier daemon
// left there, and removes what nobody needs. cfg has its defaults set and was
// checked. An error names what to do.
func Open(cfg config.Config, o Options) (*Agent, error) {
	a := &Agent{
		cfg: cfg, log: o.Log, version: o.Version, devices: o.Devices, health: newHealth(&cfg),
		slots: make(chan struct{}, cfg.Launches), counters: exporter.NewCounters(),
		ranks: map[job.RankID]*rank.Rank{}, later: map[job.RankID]api.Order{},
	}
	a.shims.Max = cfg.Launches // no more can be taken at once
	if a.log == nil {
		a.log = slog.Default()
	}
	a.kept = &keptLogs{limits: cfg.Logs, log: a.log, gone: func(dir string) { a.keeper.Drop(dir) }, needed: func(id job.RankID) bool { return lodges(a, id) }}
	if err := a.open(o); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

func (a *Agent) open(o Options) error {
	if err := a.openState(); err != nil {
		return err
	}
	credential, err := identity.OpenCredential(&a.cfg)
	if err != nil {
		return err
	}
	a.controller = identity.Dial(&a.cfg, credential, o.Version)
	if a.cfg.Images.Peers.Listen != "" {
		a.toNodes = credential.ToNodes()
	}
	a.keeper = a.newKeeper()
	bootID, err := boot.ID()
	if err != nil {
		return err
	}
	if a.host, err = identity.LookupHost(&a.cfg); err != nil {
		return err
	}
	if err := a.host.MakeGroups(); err != nil {
		return err
	}
	// The rest is for the system, also when jobs together have all that they may.
	if err := a.host.Cgroups.LimitPids(a.host.CgroupPrefix(), int64(config.MaxProcesses())*3/4); err != nil {
		a.log.Error("jobs together could take all processes of the machine", "error", err)
	}
	file := filepath.Join(identity.ContactRun, a.cfg.Name)
	if err := moveContact(filepath.Join(a.cfg.StateDir, "contact"), file); err != nil {
		a.log.Error("containers of an earlier version end when their lease is over", "error", err)
	}
	a.faults = faults.Open(filepath.Join(a.cfg.StateDir, "faults.json"), time.Now(), a.log)
	a.contact = contact.Open(contact.Options{
		Name: a.cfg.Name, Address: a.cfg.Controller, File: file, Records: filepath.Join(a.cfg.StateDir, "records"), Boot: bootID, Lease: time.Duration(a.cfg.Lease),
		Controller: a.controller, Credential: credential, Node: a, Log: a.log,
	})
	a.guard = &lease.Guard{Command: oci.GuardCommand, Lock: filepath.Join(identity.GuardRun, a.cfg.Name), Lease: file, Prefix: a.host.CgroupPrefix(),
		Spare: filepath.Join(a.cfg.StateDir, "ranks", "*", rank.FileAlone), Group: a.host.GuardPath()}
	if err := a.guard.Open(); err != nil {
		return err
	}
	if err := a.openParts(bootID); err != nil {
		return err
	}
	if err := a.openChecks(bootID); err != nil {
		return err
	}
	a.openReboots(bootID)
	programs, err := inside.Lay(filepath.Join(a.cfg.StateDir, "programs"))
	if err != nil {
		return fmt.Errorf("lay out the programs for containers: %w", err)
	}
	if o.onReach == nil {
		o.onReach = func(string) {}
	}
	if a.hooks, err = hooks.Open(hooks.Options{
		Dir: filepath.Join(a.cfg.StateDir, "prologs"), Boot: bootID, Prolog: a.cfg.Prolog, Epilog: a.cfg.Epilog, Cgroups: a.host.Cgroups, Prefix: a.host.CgroupPrefix(),
		Fault: a.faults.Note, Ran: a.counters.Ran, Reached: o.onReach, Log: a.log,
	}); err != nil {
		return err
	}
	a.node = a.forRanks(bootID, o.onReach)
	a.node.Programs = programs
	forLaunches(a, a.node)
	if err := a.recover(); err != nil {
		return err
	}
	a.exporter.MapJobs()
	return a.exporter.Listen()
}

// openParts opens what ranks use.
func (a *Agent) openParts(boot string) (err error) {
	a.places = placesOf(&a.cfg)
	if a.cores, err = cores.New(&a.cfg); err != nil {
		return err
	}
	if a.devices == nil {
		if a.devices, err = devices.Open(&a.cfg, boot, a.cores.Topology.Nodes, a.log); err != nil {
			// What runs here must still be looked after: it is no error.
			a.log.Error("open GPUs", "error", err)
			a.health.lacks("GPUs: " + err.Error())
		}
	}
	if a.images, err = images.Open(&a.cfg, images.Told{Pulled: a.counters.Pulled, Came: a.counters.Came}); err != nil {
		return err
	}
	if err := a.openSharing(); err != nil {
		return err
	}
	a.ahead = images.NewAhead(a.images, images.AheadNode{
		Log: a.log, Pulling: a.pulling, Healthy: a.healthy, Tell: func() { a.contact.Tell(contact.WithinPull) }, Peers: a.peers,
	})
	if a.data, err = data.Open(&a.cfg, boot, a.log, a.counters.Damaged); err != nil {
		return err
	}
	a.data.Tree = func(ctx context.Context, p client.TreePart) (io.ReadCloser, int64, error) {
		return client.Trees{Client: a.controller}.Open(ctx, a.cfg.Name, p)
	}
	if a.disk, err = disk.Open(&a.cfg, a.host.Base(), a.log, a.wroteTooMuch); err != nil {
		return err
	}
	if a.accounts, err = account.Open(filepath.Join(a.cfg.StateDir, "ids.json"), a.cfg.IDsFrom, a.log); err != nil {
		// What runs here goes on.
		a.faults.Note("which users had which ids here is not known any more, so files here may have those of others: " + err.Error())
	}
	a.accounts.Busy = a.holdsIDs
	if a.noMaps = overlay.ProbeUsers(a.cfg.Images.Dir, a.cfg.StateDir); a.noMaps != nil {
		a.log.Warn("jobs run without root, as their users: containers cannot have ids of their own here", "error", a.noMaps)
	}
	a.openRuntimes()
	a.openAppArmor()
	if a.network, err = network.Open(&a.cfg, a.host.Address, a.log, a.portHolder); err != nil {
		return err
	}
	a.streams = streams.New(a.controller, ranksForStreams{a}, a.places.Public, a.log)
	a.exporter = exporter.New(exporter.Node{
		Config: &a.cfg, Log: a.log, Version: a.version, Host: &a.host, Devices: a.devices, Containers: a.containers, Healthy: a.healthy, Failing: func() map[string]bool { return a.health.machine.Failing() },
		Shims: a.shims.Waiting, Silence: a.contact.Silence, Expiry: a.contact.Credential.Expiry, Images: a.images.Store.Usage, KeptLogs: a.kept.size, Unsent: a.keeper.Waiting,
	}, a.counters)
	return nil
}

// openRuntimes finds the programs that jobs may ask to be run by. Containers that
// they make have ids of their own, or jobs would be root here.
func (a *Agent) openRuntimes() {
	a.runtimes = map[string]runtimes.Runtime{}
	for name, c := range a.cfg.Runtimes {
		r, err := runtimes.Find(c.Path, c.Args)
		if err == nil {
			err = a.noMaps
		}
		if err != nil {
			a.log.Warn("jobs cannot have a runtime that is configured", "runtime", name, "error", err)
			continue
		}
		a.runtimes[name] = r
	}
}

// openAppArmor looks at the profile that containers shall have. Where the kernel
// has AppArmor and not the profile, none is begun rather than one without it.
func (a *Agent) openAppArmor() {
	if a.cfg.AppArmor == "" {
		return
	}
	has, err := apparmor.Ready(a.cfg.AppArmor)
	switch {
	case !has:
		a.log.Warn("jobs have no AppArmor profile: the kernel has no AppArmor", "profile", a.cfg.AppArmor)
		return
	case err != nil:
		a.log.Error("AppArmor", "error", err)
		a.health.lacks(err.Error())
	}
	a.appArmor = a.cfg.AppArmor
}

// forRanks is what ranks see of the node.
func (a *Agent) forRanks(boot string, onReach func(string)) *rank.Node {
	return &rank.Node{
		Config: &a.cfg, Host: &a.host, Instance: a.instance, Boot: boot, Version: a.version, Log: a.log, LeaseFile: a.contact.LeaseFile(),
		Accounts: a.accounts, NoMaps: a.noMaps, Runtimes: a.runtimes, AppArmor: a.appArmor,
		Images: a.images, Peers: a.peers, Data: a.data, Disk: a.disk, Storage: storage.New(&a.cfg), Cores: a.cores, Devices: a.devices, Network: a.network,
		Shims: &a.shims, Homes: &a.homes, Past: &a.past, Slots: a.slots, Counters: a.counters, Hooks: a.hooks, Health: a.health,
		Leaving: a.leaving, Tell: a.contact.Tell, Changed: a.exporter.MapJobs, Reached: onReach,
	}
}

// openState makes or opens the state directory and takes its locks: one for
// the directory, one for the node's name on this machine, by which everything
// on the host is found.
func (a *Agent) openState() error {
	for _, d := range []struct {
		path string
		mode os.FileMode
	}{
		{a.cfg.StateDir, 0o711}, {a.dirRanks(), 0o711}, {filepath.Join(a.cfg.StateDir, "disk"), 0o711}, {filepath.Join(a.cfg.StateDir, "programs"), 0o755},
		{filepath.Join(a.cfg.StateDir, "prologs"), 0o700}, {a.cfg.Data.Dir, 0o700}, {filepath.Join(a.cfg.Data.Dir, "ranks"), 0o700},
		{filepath.Join(a.cfg.Data.Dir, "cache"), 0o700}, {a.cfg.Images.Dir, 0o700}, {identity.LockRun, 0o711}, {identity.ContactRun, 0o711}, {identity.GuardRun, 0o711},
	} {
		if err := atomicfile.Dir(d.path, d.mode, a.log); err != nil {
			return fmt.Errorf("make state directory: %w", err)
		}
	}
	for _, dir := range []string{a.dirRanks(), filepath.Join(a.cfg.StateDir, "disk")} {
		if err := atomicfile.Spread(dir); err != nil { // it is slower then
			a.log.Warn("directories of ranks lie together", "error", err)
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
	held, err := identity.TakeDir(a.cfg.StateDir, "state directory "+a.cfg.StateDir)
	if err != nil {
		return err
	}
	a.locks, a.locked = append(a.locks, held), true
	err = a.removePipes()
	if err == nil {
		a.instance, err = identity.LoadInstance(a.cfg.StateDir)
	}
	return err
}

// removePipes removes what is in the place of a file of the node's or a rank's and is a named pipe or a device: whoever
// opened it would wait for ever. It is then as if the file was gone.
func (a *Agent) removePipes() error {
	ranks, err := filepath.Glob(filepath.Join(a.dirRanks(), "*"))
	if err != nil {
		return err
	}
	dirs := []string{a.cfg.StateDir, filepath.Join(a.cfg.StateDir, "prologs")}
	for _, r := range ranks {
		dirs = append(dirs, r, filepath.Join(r, "box"), filepath.Join(r, "box", "log"))
	}
	for _, dir := range dirs {
		pipes, _ := atomicfile.Pipes(dir) // what is no directory has none
		for _, path := range pipes {
			a.log.Error("a named pipe or a device is in the place of a file, and is removed: what was in the file is lost", "path", path)
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// moveContact moves the note of the last contact from where earlier versions
// had it. Their containers find it by the link.
func moveContact(old, file string) error {
	if st, err := os.Lstat(old); err != nil || !st.Mode().IsRegular() {
		return nil
	}
	text, err := os.ReadFile(old)
	if err == nil {
		err = atomicfile.Write(file, text)
	}
	if err == nil {
		_ = os.Remove(old + ".link")
		err = os.Symlink(file, old+".link")
	}
	if err != nil {
		return err
	}
	return os.Rename(old+".link", old)
}

// Run keeps the node equal to what the controller desires until ctx ends. It
// then waits for its goroutines; containers go on.
func (a *Agent) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.ctx = ctx
	a.log.Info("node daemon runs", "node", a.cfg.Name, "controller", a.cfg.Controller, "instance", a.instance, "ranks", len(a.ranks))
	a.resume()
	for _, loop := range []func(context.Context){a.contact.Run, a.houseLoop, a.scrubLoop, a.health.watch, a.health.machine.Watch, a.health.reboots.Run, a.networkLoop, a.gpuLoop, a.sampleLoop, a.ahead.Run, a.disk.Run, a.keeper.Run, a.exporter.Run, a.runSharing} {
		a.wg.Go(func() { loop(ctx) }) // ends with ctx
	}
	<-ctx.Done()
	a.wg.Wait()
	a.streams.Wait()
	return nil
}

// Running counts the ranks whose containers live.
func (a *Agent) Running() int {
	live, _ := a.containers()
	return len(live)
}

// Close lets go of the state directory. Run must have returned.
func (a *Agent) Close() error {
	a.shims.Close()
	a.homes.Close()
	var err error
	if a.sharing != nil {
		_ = a.sharing.Close() // it is closed already where it has run
	}
	if a.images != nil {
		err = a.images.Close()
	}
	if a.controller != nil {
		a.controller.Close()
	}
	if a.devices != nil {
		err = errors.Join(err, a.devices.Close())
	}
	if a.exporter != nil {
		err = errors.Join(err, a.exporter.Close())
	}
	if a.locked { // else another daemon may be using them
		a.host.RemoveGroups()
	}
	if a.guard != nil {
		a.guard.Close()
	}
	err = errors.Join(err, a.network.Close(a.Running()))
	if a.disk != nil {
		err = errors.Join(err, a.disk.Close())
	}
	for _, l := range a.locks {
		l.Close()
	}
	return err
}

func (a *Agent) dirRanks() string { return filepath.Join(a.cfg.StateDir, "ranks") }

func (a *Agent) healthy() bool { return len(a.health.reasons()) == 0 }
