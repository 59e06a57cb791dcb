package ctld

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"gbatch/accounting"
	"gbatch/internal/control"
	"gbatch/internal/pki"
	"gbatch/internal/state"
	"gbatch/internal/store"
	"gbatch/sched"
)

// Server is a controller process.
type Server struct {
	conf    atomic.Pointer[Config] // read it by cfg
	log     *slog.Logger
	loop    *loop
	store   *store.Store
	vault   *vault
	pki     *pki.Authority
	keys    *keyring
	auth    *authenticator
	source  func() (Config, error) // the configuration file as it is now
	streams *streams
	mailer  *mailer
	samples samples
	skews   *skews
	census  counter                           // for those who scrape
	terms   atomic.Pointer[[]accounting.Term] // of the share tree, for the same

	watchers      watchers
	eventPatience time.Duration

	started time.Time
	now     func() time.Time
	api     *guard
	lns     []net.Listener

	deniedRate *rate.Limiter
	ruling     sync.Mutex // held while the rules change
}

// cfg is the configuration in force.
func (s *Server) cfg() *Config { return s.conf.Load() }

// Names of files below Config.Dir.
const (
	storeDir  = "store"
	vaultFile = "secrets.key"
)

// Open takes the state directory, loads the store and begins to listen. Source
// reads the configuration, now and whenever the rules are to be read again.
func Open(source func() (Config, error), log *slog.Logger) (*Server, error) {
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
	s := &Server{log: log, source: source, streams: newStreams(), skews: newSkews(log), started: time.Now(), now: time.Now, deniedRate: newDeniedRate(), eventPatience: eventPatience}
	s.conf.Store(&cfg)
	s.mailer = newMailer(s)
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Server) open() (err error) {
	if s.vault, err = openVault(filepath.Join(s.cfg().Dir, vaultFile)); err != nil {
		return err
	}
	if s.pki, err = pki.Open(s.cfg().Dir, s.now); err != nil {
		return err
	}
	dir := filepath.Join(s.cfg().Dir, storeDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make store directory: %w", err)
	}
	if s.store, err = store.Open(store.Config{Dir: dir, Log: s.log}); err != nil {
		return err
	}
	if err = sweepBackups(s.cfg().Dir); err != nil {
		return err
	}
	if s.keys, err = openKeyring(s.cfg().Dir, s.pki.Pin(), s.store); err != nil {
		return err
	}
	s.auth = &authenticator{conf: s.cfg, keys: s.keys, people: newPeople(s.log), now: s.now, decode: make(chan struct{}, mungeAtOnce)}
	if err := s.loadProjects(); err != nil {
		return err
	}
	if s.loop, err = s.load(); err != nil {
		return err
	}
	s.api = s.routes()
	return s.listen()
}

// load rebuilds the controller from the store.
func (s *Server) load() (*loop, error) {
	began := time.Now()
	cc, err := s.cfg().control()
	if err != nil {
		return nil, err
	}
	ctl, err := control.New(cc, s.store.Epoch())
	if err != nil {
		return nil, err
	}
	if err := s.store.Load(ctl.Load); err != nil {
		return nil, fmt.Errorf("load store: %w", err)
	}
	now := sched.Time(time.Now().UnixMilli())
	if err := ctl.Loaded(now); err != nil {
		return nil, fmt.Errorf("load store: %w", err)
	}
	restored, err := afterRestore(ctl, s.store, now)
	if err != nil {
		return nil, err
	}
	if restored {
		s.log.Warn("this state was restored from a backup: jobs that waited may be on hold, and nodes get new ones when they have said what they run")
	}
	if err := ctl.Check(); err != nil {
		return nil, fmt.Errorf("the stored state contradicts itself: %w", err)
	}
	l := &loop{
		ctl: ctl, store: s.store, clock: newSteadyClock(machineClock(), s.log), reserve: s.cfg().ReserveMiB << 20, log: s.log, metrics: newMeasures(),
		inbox: make(chan request, inboxSize), feed: newFeed(s.store.Epoch()), ended: make(chan struct{}), now: now, mail: s.mailer.take,
	}
	err = s.store.Newest(state.KindAudit, func(r state.Record) (bool, error) {
		l.audited = r.Seq
		return false, nil
	})
	if err != nil {
		return nil, err
	}
	l.view.Store(ctl.View(now))
	s.log.Info("state loaded", "jobs", l.view.Load().Len(), "nodes", len(l.view.Load().Nodes), "ms", time.Since(began).Milliseconds())
	return l, nil
}

func (s *Server) listen() error {
	path := s.cfg().SocketPath()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make socket directory: %w", err)
	}
	// The store's lock says that no other controller uses this directory, so a
	// socket file that is there is left over.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove old socket: %w", err)
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("listen on socket: %w", err)
	}
	s.lns = append(s.lns, ln)
	if err := os.Chmod(path, 0o666); err != nil { // who calls is asked of the kernel
		return fmt.Errorf("open socket to users: %w", err)
	}
	if s.cfg().Listen == "" {
		return nil
	}
	if ln, err = net.Listen("tcp", s.cfg().Listen); err != nil {
		return fmt.Errorf("listen: %w (change `listen` in the configuration, or stop what uses it)", err)
	}
	s.lns = append(s.lns, tls.NewListener(ln, s.pki.ServerTLS()))
	return nil
}

// Addresses are what the server listens on, the socket first.
func (s *Server) Addresses() []string {
	var out []string
	for _, ln := range s.lns {
		switch ln.Addr().Network() {
		case "unix":
			out = append(out, "unix://"+ln.Addr().String())
		default:
			out = append(out, "https://"+ln.Addr().String()+"#"+s.pki.Pin())
		}
	}
	return out
}

// Run serves until ctx is done, or until the store fails.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	srv := &http.Server{
		Handler: s.api, ConnContext: connContext, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx }, // long polls end when the server does
	}
	var g errgroup.Group
	g.Go(func() error { // the loop
		defer cancel()
		return s.loop.run(ctx)
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
				s.log.Error("certificate not renewed; it is tried again", "err", err)
			}
		}
	})
	for _, ln := range s.lns {
		g.Go(func() error { // one for each listener
			defer cancel()
			if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("serve %s: %w", ln.Addr(), err)
			}
			return nil
		})
	}
	g.Go(func() error { // works out shares for those who scrape
		s.accountsLoop(ctx)
		return nil
	})
	g.Go(func() error { // the mailer
		s.mailer.run(ctx)
		return nil
	})
	g.Go(func() error { // ends the listeners
		<-ctx.Done()
		quick, done := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer done()
		if err := srv.Shutdown(quick); err != nil {
			return srv.Close()
		}
		return nil
	})
	err := g.Wait()
	s.streams.wait()
	return err
}

// Close releases what Open took, after Run has returned.
func (s *Server) Close() error {
	var errs []error
	for _, ln := range s.lns {
		if err := ln.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	return errors.Join(errs...)
}
