package ctld

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/control"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/archive"
	"gbatch/internal/ctld/backup"
	"gbatch/internal/ctld/conns"
	"gbatch/internal/ctld/counts"
	"gbatch/internal/ctld/curves"
	"gbatch/internal/ctld/events"
	"gbatch/internal/ctld/ids"
	"gbatch/internal/ctld/jobstore"
	"gbatch/internal/ctld/keep"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/ctld/meter"
	"gbatch/internal/ctld/ports"
	"gbatch/internal/ctld/route"
	"gbatch/internal/ctld/rules"
	"gbatch/internal/ctld/samples"
	"gbatch/internal/ctld/scrub"
	"gbatch/internal/ctld/site"
	"gbatch/internal/ctld/streams"
	"gbatch/internal/ctld/trees"
	"gbatch/internal/ctld/webhook"
	"gbatch/internal/job"
	"gbatch/internal/pki"
	"gbatch/internal/state"
	"gbatch/internal/store"
)

// Server is a controller process: its parts, which the handlers of routes share.
type Server struct {
	log     *slog.Logger
	rules   *rules.Rules
	store   *store.Store
	pki     *pki.Authority
	keys    *access.Keyring
	rights  *access.Rights
	auth    *access.Authenticator
	jobs    *jobstore.Reader
	ids     *ids.Book
	meters  *meter.Meters
	loop    *loop.Loop
	streams *streams.Hub
	samples samples.Samples
	skews   *samples.Skews
	kept    *keep.Store
	curves  *curves.Store
	trees   *trees.Store
	opened  *streams.OfJobs
	ports   *ports.Ports
	hooks   *webhook.Sender
	scrape  *counts.Exporter
	changes *events.Source
	api     *route.Guard
	front   *front
	conns   *conns.Table

	started time.Time
	now     func() time.Time
	machine Machine

	leads *leadership // nil: this controller is the only one
}

// Open takes the state directory, begins to listen and loads the store; who asks waits for Run. Source
// reads the configuration, now and whenever the rules are to be read again.
func Open(source func() (site.Config, error), log *slog.Logger) (*Server, error) {
	return open(source, nil, Machine{}, log)
}

func open(source func() (site.Config, error), leads *leadership, m Machine, log *slog.Logger) (*Server, error) {
	cfg, err := source()
	if err == nil {
		err = cfg.Validate()
	}
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("make state directory: %w", err)
	}
	people := access.NewPeople(log)
	s := &Server{
		log: log, rules: rules.New(cfg, source, people, log), streams: streams.NewHub(), skews: samples.NewSkews(log), started: time.Now(), now: time.Now,
		meters: meter.New(), leads: leads, machine: m,
	}
	s.rights = &access.Rights{Conf: s.rules.Now, People: people}
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Server) open() error {
	cfg := s.rules.Now()
	if err := cfg.CheckFiles(); err != nil {
		return err
	}
	if err := s.openStore(); err != nil {
		return err
	}
	if err := backup.CheckKeys(cfg.Dir, s.store); err != nil {
		return err
	}
	vault, err := jobstore.OpenVault(filepath.Join(cfg.Dir, site.VaultFile))
	if err != nil {
		return err
	}
	if err = s.openPKI(cfg.Dir, vault); err != nil {
		return err
	}
	if err = s.openFront(); err != nil {
		return err
	}
	if err = backup.Sweep(cfg.Dir); err != nil {
		return err
	}
	if s.keys, err = access.OpenKeyring(cfg.Dir, s.pki.Pin(), s.store, s.log); err != nil {
		return err
	}
	if err := backup.NoteKeys(cfg.Dir, s.store); err != nil {
		return err
	}
	s.auth = access.NewAuthenticator(s.rights, s.keys, s.job, s.now)
	if err := s.rules.LoadProjects(s.store); err != nil {
		return err
	}
	if s.loop, err = s.load(); err != nil {
		return err
	}
	s.rules.Loop = s.loop
	if s.ids, err = ids.Open(s.store, s.loop, func() uint32 { return s.rules.Now().IDsFrom }); err != nil {
		return err
	}
	s.jobs = &jobstore.Reader{View: s.loop.View, Store: s.store, Vault: vault}
	if s.trees, err = s.openTrees(); err != nil {
		return err
	}
	if s.hooks, err = webhook.Open(webhook.Config{Site: s.rules.Now, Jobs: s.jobs, Loop: s.loop, Log: s.log, Now: s.now, Mailed: s.meters.Mailed}, s.store); err != nil {
		return err
	}
	s.loop.Hooks = s.hooks
	if s.kept, err = s.openLogs(); err != nil {
		return err
	}
	s.curves = curves.Open(curves.Config{Dir: filepath.Join(cfg.Dir, site.CurvesDir), Most: func() int64 { return s.rules.Now().CurvesMiB << 20 }, Room: s.spare, Now: s.now, Log: s.log})
	s.scrape = &counts.Exporter{Version: Version, Loop: s.loop, Meters: s.meters, Aliases: func() []string { return s.rules.Now().Metrics.Aliases }, Logs: s.kept,
		Licenses: func() map[string]int64 { return s.rules.Now().Licenses },
		Expiry:   s.pki.Expiry, Tokens: func(lasted, within time.Duration) map[string]int { return s.keys.Expiring(s.now(), lasted, within) }}
	if s.leads != nil {
		s.scrape.Odd = s.leads.members.Odd
	}
	s.scrape.Register(s.meters.Reg)
	s.changes = &events.Source{Loop: s.loop, Jobs: s.jobs, Rights: s.rights, Begin: s.streams.Begin, Patience: events.Patience}
	s.openPorts()
	guard := route.Config{Identify: s.auth.Identify, Conns: s.conns, Caps: s.caps, Large: s.largeAnswer, Refused: s.loop.Refused, Measure: s.meters.Route, Log: s.log}
	if s.leads != nil {
		guard.Fresh = s.leads.fresh
	}
	s.api = route.New(guard, s.routes())
	return nil
}

// openPKI opens the authority. One of several has it already, by which it is reached.
func (s *Server) openPKI(dir string, vault *jobstore.Vault) (err error) {
	if s.leads != nil {
		s.pki = s.leads.pki
		return nil
	}
	if s.pki, err = pki.Open(dir, s.now); err == nil {
		s.pki.Names, s.pki.Secret = func() []string { return s.rules.Now().ServerNames() }, vault.Key(ofSessions)
	}
	return err
}

// ofSessions is what the authority's secret is for.
const ofSessions = "sessions of TLS"

// job is one that is not over, as it is now; nil: there is none.
func (s *Server) job(n job.Number) *state.Job { return s.loop.View().Job(n) }

// openPorts makes what leads to jobs that run.
func (s *Server) openPorts() {
	s.opened = &streams.OfJobs{Loop: s.loop, Jobs: s.jobs, Rights: s.rights, Streams: s.streams, Kept: s.kept}
	s.ports = ports.New(ports.Config{Conf: s.rules.Now, Jobs: s.jobs, Auth: s.auth, Streams: s.opened, Conns: s.conns, Now: s.now, Log: s.log,
		Enter: func(id access.Identity, method string, endless bool) (func(), *api.Error) {
			return s.api.Enter(id, method, endless)
		}})
}

func (s *Server) openStore() (err error) {
	if s.leads != nil {
		s.store = s.leads.Store
		return nil
	}
	if _, err := os.Stat(s.rules.Now().ReplicaPath()); err == nil {
		return fmt.Errorf("%s is there: this controller was one of several. To go on alone with what it has, when no other one goes on, move that away", s.rules.Now().ReplicaPath())
	}
	dir := filepath.Join(s.rules.Now().Dir, site.StoreDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make store directory: %w", err)
	}
	c := store.Config{Dir: dir, Log: s.log}
	if s.machine.Listen == nil {
		c.Recent = s.rules.Now().RecentPath()
	}
	if c.Recent != "" {
		if err := os.MkdirAll(filepath.Dir(c.Recent), 0o755); err != nil {
			return fmt.Errorf("make socket directory: %w", err)
		}
		if err := unanswered(s.rules.Now().SocketPath()); err != nil { // before the file beside it is another's
			return err
		}
	}
	s.store, err = store.Open(c)
	return err
}

// scrub looks for damage of what is stored.
func (s *Server) scrub() *scrub.Scrub {
	mend := ""
	if c := s.rules.Now(); c.Replica != nil {
		mend = addAgain(*c)
	}
	return &scrub.Scrub{Config: scrub.Config{
		Mend: mend, Dir: s.rules.Now().Dir, Store: s.store, Trees: s.trees.Verify, Logs: s.kept.Verify, Done: s.meters.Scrubbed, Now: s.now, Log: s.log, Wait: client.Sleep,
		Spare: s.spare,
	}}
}

// spare says whether the disk has more room than the controller needs.
func (s *Server) spare() bool {
	l := s.loop.Load()
	return !l.FreeKnown || l.Free > 2*l.Reserve
}

// caps are what a user may have open and ask in a second.
func (s *Server) caps(name string) route.Caps {
	l := s.rules.Now().Limits.Of(name)
	return route.Caps{Requests: int(l.Requests), Streams: int(l.Streams), Changes: l.Changes, Reads: l.Reads}
}

// usualQueue is how many jobs an answer may have that counts for one.
const usualQueue = 100_000

// largeAnswer is for how many a large answer counts.
func (s *Server) largeAnswer() int64 { return int64(1 + s.loop.View().Len()/usualQueue) }

// ReloadOn reads the configuration again at each signal, until ctx is done. An
// error leaves the old rules in force.
func (s *Server) ReloadOn(ctx context.Context, sig <-chan os.Signal) { s.rules.ReloadOn(ctx, sig) }

// load rebuilds the controller from the store.
func (s *Server) load() (*loop.Loop, error) {
	began := time.Now()
	cc, err := s.rules.Now().Rules()
	if err != nil {
		return nil, err
	}
	ctl, ahead, err := s.fill(cc)
	if err != nil {
		return nil, fmt.Errorf("load store: %w", err)
	}
	clock, confirm, published := s.clock()
	now := clock.Now()
	if err := ctl.Loaded(now); err != nil {
		return nil, fmt.Errorf("load store: %w", err)
	}
	restored, err := backup.Loaded(ctl, s.store, now)
	if err != nil {
		return nil, err
	}
	if restored {
		s.log.Warn("this state was restored from a backup, or lacks what was lost: jobs that waited may be on hold, and nodes get new ones when they have said what they run")
	}
	if err := ctl.Check(); err != nil {
		return nil, fmt.Errorf("the stored state contradicts itself: %w", err)
	}
	reserve := func() uint64 { return s.rules.Now().ReserveMiB << 20 }
	l, err := loop.New(loop.Config{Controller: ctl, Store: s.store, Clock: clock, Meters: s.meters, Reserve: reserve, Confirm: confirm, Published: published, Log: s.log}, now)
	if err != nil {
		return nil, err
	}
	s.log.Info("state loaded", "jobs", l.View().Len(), "nodes", l.View().Nodes.Len(), "ahead", ahead, "ms", time.Since(began).Milliseconds())
	return l, nil
}

// fill makes a controller of all that is stored. Ahead is of how many jobs the records were read before.
func (s *Server) fill(rules control.Config) (ctl *control.Controller, ahead int, err error) {
	if s.leads == nil {
		if ctl, err = control.New(rules, s.store.Epoch()); err == nil {
			err = s.store.Load(ctl.Load)
		}
		return ctl, 0, err
	}
	jobs, ahead, err := s.leads.jobs.Take(s.store)
	if err == nil {
		ctl, err = control.Of(rules, s.store.Epoch(), jobs)
	}
	if err == nil {
		err = s.store.LoadBeside(ctl.Load)
	}
	return ctl, ahead, err
}

// clock is what the controller counts by, what asks whether it still leads, and what is told of what it publishes; nil:
// it is the only one.
func (s *Server) clock() (clock *loop.Clock, confirm func() error, published func()) {
	if l := s.leads; l != nil {
		return l.clock, l.Confirm, func() { l.jobs.Published(l.Through()) }
	}
	path := filepath.Join(s.rules.Now().Dir, site.ClockFile)
	if s.machine.Clocks != nil {
		return loop.OpenClockBy(path, "another machine's", s.machine.Clocks, s.log), nil, nil
	}
	return loop.OpenClock(path, s.log), nil, nil
}

// openLogs opens the logs that are kept here.
func (s *Server) openLogs() (*keep.Store, error) {
	o := logsOf(s.rules.Now, s.now, s.log)
	if at := s.rules.Now().Logs.S3; at != nil {
		bucket, err := archive.New(at.Place())
		if err != nil {
			return nil, fmt.Errorf("open archive of logs: %w", err)
		}
		o.Archive = bucket
	}
	if s.leads != nil {
		o.Others = s.leads.others
	}
	return keep.Open(o), nil
}

// logsOf is how logs are kept by a controller with this configuration.
func logsOf(conf func() *site.Config, now func() time.Time, log *slog.Logger) keep.Options {
	return keep.Options{Dir: conf().LogsPath(), Now: now, Log: log, Limits: func() keep.Limits {
		c := conf()
		l := c.Logs
		return keep.Limits{Log: l.PerRankMiB << 20, User: l.PerUserMiB << 20, All: l.TotalMiB << 20, Free: max(l.FreeMiB, int64(min(c.ReserveMiB, site.MaxMiB))) << 20, For: l.KeepFor()}
	}}
}

// openFront has who asks wait until the server answers. One of several has the front that it had while it followed, with what came then.
func (s *Server) openFront() (err error) {
	if s.leads != nil {
		s.front = s.leads.front
		now := s.rules.Now
		s.front.rules.Store(&now)
	} else if s.front, err = openFront(reach{s.listeners, s.rules.Now, s.pki}, nil, s.log); err != nil {
		return err
	}
	s.conns = s.front.table
	s.conns.Tell(s.meters.Connections, s.meters.Refused)
	return nil
}

// Addresses are what the server listens on, the socket first.
func (s *Server) Addresses() []string {
	var out []string
	for _, ln := range s.front.lns {
		switch ln.Addr().Network() {
		case "unix":
			out = append(out, "unix://"+ln.Addr().String())
		default:
			out = append(out, "https://"+ln.Addr().String()+"#"+s.pki.Pin())
		}
	}
	return out
}

// handler is what all listeners serve.
func (s *Server) handler() http.Handler {
	h := s.ports.Before(s.meters.Route("ports of jobs", s.ports.Serve), s.api)
	if s.leads != nil {
		h = signed(s.rules.Now().Replica.Name, h)
	}
	return h
}

// Run serves until ctx is done, or until the store fails.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var g errgroup.Group
	g.Go(func() error { // the loop
		defer cancel()
		return s.loop.Run(ctx)
	})
	g.Go(func() error { // says once what is odd in the rules
		s.rules.LogStrangers()
		return nil
	})
	g.Go(func() error { // certificates, until ctx is done
		for every := time.NewTicker(time.Hour); ; {
			select {
			case <-ctx.Done():
				every.Stop()
				return nil
			case <-every.C:
			}
			if err := s.pki.Renew(); err != nil {
				s.log.Error("certificate not renewed; it is tried again", "error", err)
			}
		}
	})
	g.Go(func() error { // who asks
		defer cancel()
		return s.answer(ctx)
	})
	// Streams of changes, shares for those who scrape, mail, words to services, directories that
	// no job needs, logs, curves, damage, ports: each works until ctx is done.
	work := []func(context.Context){s.changes.Run, s.scrape.Run, s.hooks.Run, s.trees.Run, s.kept.Run, s.kept.RunArchive, s.kept.RunCopies, s.curves.Run, s.scrub().Run, s.ports.Run}
	if s.leads != nil {
		s.leads.members.Useless = s.loop.Useless
		work = append(work, s.leads.members.Run)
	}
	for _, run := range work {
		g.Go(func() error { // one for each
			run(ctx)
			return nil
		})
	}
	err := g.Wait()
	s.streams.Wait()
	return err
}

// answer serves who asks until ctx is done, or until a listener has ended.
func (s *Server) answer(ctx context.Context) error {
	if s.leads != nil {
		s.front.serve(ctx, s.handler())
		return nil // its own end says what went wrong
	}
	return s.front.answer(ctx, s.handler())
}

// Close releases what Open took, after Run has returned.
func (s *Server) Close() error {
	var errs []error
	if s.front != nil && s.leads == nil {
		errs = append(errs, s.front.end())
	}
	if s.kept != nil {
		s.kept.Close()
	}
	if s.store != nil && s.leads == nil {
		errs = append(errs, s.store.Close())
	}
	return errors.Join(errs...)
}
