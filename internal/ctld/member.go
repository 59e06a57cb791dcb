package ctld

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"gbatch/internal/ctld/controllers"
	"gbatch/internal/ctld/copies"
	"gbatch/internal/ctld/follow"
	"gbatch/internal/ctld/jobstore"
	"gbatch/internal/ctld/keep"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/ctld/site"
	"gbatch/internal/ctld/trees"
	"gbatch/internal/pki"
	"gbatch/internal/replica"
	"gbatch/internal/store"
	"gbatch/sched"
)

// Member is the process of one of several controllers. While it leads it has a Server; else
// it keeps a copy of all records and says who leads.
type Member struct {
	source func() (site.Config, error)
	cfg    site.Config
	log    *slog.Logger
	reload <-chan os.Signal

	pki     *pki.Authority
	clock   *loop.Clock
	jobs    follow.Jobs // while another one leads
	replica *replica.Replica
	asked   atomic.Pointer[replica.Replica] // the same; the others may ask about it while it is opened
	copies  *copies.Server
	trees   *trees.Store   // also while this one leads
	keeping sync.WaitGroup // keepCopies
	front   atomic.Pointer[front]
	removed atomic.Bool // by what the others say

	ended  <-chan struct{} // closed when nothing of the last time that this member led goes on
	broken chan error      // why what went on then has this member end
}

// OpenMember opens the store and the log that the controllers have in common. It is not
// known yet who leads.
func OpenMember(source func() (site.Config, error), reload <-chan os.Signal, log *slog.Logger) (*Member, error) {
	cfg, err := source()
	if err == nil {
		err = cfg.Validate()
	}
	if err != nil {
		return nil, err
	}
	never := make(chan struct{})
	close(never)
	m := &Member{source: source, cfg: cfg, log: log.With("controller", cfg.Replica.Name), reload: reload, ended: never, broken: make(chan error, 1)}
	if err := cfg.CheckFiles(); err != nil {
		return nil, err
	}
	if err := hasKeys(cfg); err != nil {
		return nil, err
	}
	if m.pki, err = pki.Open(cfg.Dir, time.Now); err != nil {
		return nil, err
	}
	m.pki.Names = m.names
	if m.pki.Secret, err = secretOf(cfg.Dir); err != nil {
		return nil, err
	}
	if err := m.mayBegin(context.Background()); err != nil {
		return nil, err
	}
	m.trees, err = trees.Open(trees.Config{Dir: filepath.Join(cfg.Dir, site.TreesDir), Now: time.Now, Log: m.log}, m.followed())
	if err != nil {
		return nil, err
	}
	m.clock = loop.OpenClock(filepath.Join(cfg.Dir, site.ClockFile), m.log)
	accept, dial := m.pki.MemberTLS()
	ln, err := tls.Listen("tcp", cfg.Replica.Listen, accept)
	if err != nil {
		return nil, fmt.Errorf("listen for other controllers: %w (%s)", err, listenHint("replica.listen", err))
	}
	m.copies = copies.NewServer(m.log)
	ln = controllers.Answering(ln, m.statement, m.copies.Take)
	m.replica, err = replica.Open(replica.Config{
		Name: cfg.Replica.Name, Address: cfg.Replica.Address(), Dir: cfg.ReplicaPath(),
		Store: store.Config{Dir: filepath.Join(cfg.Dir, site.StoreDir), Log: m.log, Applied: m.jobs.Applied}, Listener: ln, Log: m.log, Patience: time.Duration(cfg.Replica.Patience) * time.Second,
		NowMS: func() int64 { return int64(m.clock.Now()) },
		Dial: func(address string, timeout time.Duration) (net.Conn, error) {
			return tls.DialWithDialer(&net.Dialer{Timeout: timeout}, "tcp", address, dial)
		},
	})
	if err != nil {
		return nil, errors.Join(err, m.copies.Close())
	}
	m.asked.Store(m.replica)
	return m, nil
}

// names are those by which browsers come.
func (m *Member) names() []string {
	if f := m.front.Load(); f != nil {
		return (*f.rules.Load())().ServerNames()
	}
	return m.cfg.ServerNames()
}

// hasKeys refuses a directory without the keys of a site. One that was emptied would else begin a second site at its
// old address, with keys of its own.
func hasKeys(c site.Config) error {
	there, err := pki.Exists(c.Dir)
	if err != nil || there {
		return err
	}
	return fmt.Errorf("%s holds no keys, and this controller is one of several (replica in its configuration). "+
		"If others run: there, %s. If it is the first controller of a new site: `gctld init`", c.Dir, addAgain(c))
}

// secretOf is the authority's secret of one of several controllers; nil: it has no key of secrets yet, which who leads makes, or misses.
func secretOf(dir string) ([]byte, error) {
	file := filepath.Join(dir, site.VaultFile)
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	vault, err := jobstore.OpenVault(file)
	if err != nil {
		return nil, err
	}
	return vault.Key(ofSessions), nil
}

// statement is what this controller says of itself to the one that leads.
func (m *Member) statement() controllers.Statement {
	s := controllers.NewStatement(Version, m.source)
	if r := m.asked.Load(); r != nil {
		s.Applied, s.Members = r.Applied(), memberNames(r)
	}
	return s
}

// others looks after the other controllers while this one leads.
func (m *Member) others() *controllers.Members {
	out := controllers.New(m.replica, m.cfg, m.log)
	out.Own = m.statement
	out.Ask = func(ctx context.Context, address string) (controllers.Statement, error) {
		return controllers.Ask(ctx, address, m.pki.AskTLS())
	}
	return out
}

// Close releases what OpenMember took, after Run has returned.
func (m *Member) Close() error {
	m.keeping.Wait()
	return errors.Join(m.replica.Close(), m.copies.Close())
}

// Run takes part until ctx is done, or until this member cannot go on.
func (m *Member) Run(ctx context.Context) error {
	f, err := m.refer()
	for leads := true; err == nil && leads; {
		if leads, err = m.follow(ctx, f); leads {
			err = m.lead(ctx, f)
		}
	}
	m.handOver()
	<-m.ended
	select {
	case why := <-m.broken:
		err = errors.Join(err, why)
	default:
	}
	if f == nil {
		return err
	}
	return errors.Join(err, f.end())
}

// handOver has another controller lead, if this one does: the others would find out that it has ended, and that only when the last
// whom it answers is through.
func (m *Member) handOver() {
	if !m.replica.Leading() {
		return
	}
	if err := m.replica.HandOver(); err != nil {
		m.log.Info("the lead was not handed over: another controller leads when this one has ended", "error", err)
	}
}

// follow waits until this controller leads. False: ctx is done.
func (m *Member) follow(ctx context.Context, f *front) (leads bool, err error) {
	m.jobs.Begin()
	reads, stop := context.WithCancel(ctx)
	read := make(chan struct{})
	go func() { m.jobs.Follow(reads, m.replica.Read); close(read) }() // ends with reads
	m.trees.Rule(m.followed())
	ended := m.ended
	m.keeping.Go(func() { m.keepCopies(reads, ended) }) // ends with reads; not awaited, as who leads must not wait for it
	m.keeping.Go(func() { m.lookThrough(reads) })       // likewise
	m.keeping.Go(func() { m.hearRemoved(reads) })       // likewise
	defer func() { stop(); <-read }()
	select {
	case <-m.replica.Leads(): // that it leads is no news to one that does
	default:
	}
	for !m.replica.Leading() {
		select {
		case <-ctx.Done():
			return false, nil
		case <-f.down.Done():
			return false, nil // its end says what went wrong
		case err := <-m.broken:
			return false, err
		case err := <-m.replica.Failed():
			return false, fmt.Errorf("follow: %w", err)
		case <-m.replica.Leads():
		}
	}
	return ctx.Err() == nil, nil
}

// followed are the rules for uploaded directories while another controller leads.
func (m *Member) followed() trees.Rules {
	return trees.Following(func() int64 { return freeForTrees(&m.cfg) })
}

// keepCopies takes copies of logs and of uploaded directories from the controller that leads,
// until ctx is done. It begins when nothing goes on any more of when this one led.
func (m *Member) keepCopies(ctx context.Context, ended <-chan struct{}) {
	select {
	case <-ended:
	case <-ctx.Done():
		return
	}
	logs := keep.Open(logsOf(func() *site.Config { return &m.cfg }, time.Now, m.log))
	defer logs.Close()
	defer m.copies.Keep(logs, m.trees)()
	logs.Run(ctx)
}

// lead is the controller until this member leads no more. What it answers then ends beside what comes next.
func (m *Member) lead(ctx context.Context, f *front) error {
	began := time.Now()
	<-m.ended // two would write the same files
	select {
	case err := <-m.broken:
		return err
	default:
	}
	if err := m.mayLead(ctx); err != nil {
		return fmt.Errorf("lead: %w", err)
	}
	others := copies.NewOthers(m.cfg.Replica.Name, m.replica.Members, m.pki.CopyTLS)
	l, err := m.replica.Ready()
	if err == nil {
		defer l.End()
		m.clock.GoOn(sched.Time(l.From))
		err = l.Begin()
	}
	var s *Server
	if err == nil {
		s, err = open(m.source, &leadership{Lead: l, clock: m.clock, jobs: &m.jobs, members: m.others(), others: others, trees: m.trees, front: f, pki: m.pki}, Machine{}, m.log)
	}
	if err != nil {
		others.Close()
	}
	if errors.Is(err, replica.ErrLost) {
		return nil // another one does
	}
	if err != nil {
		return fmt.Errorf("lead: %w", err)
	}
	m.log.Info("this controller leads", "ms", time.Since(began).Milliseconds())
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go s.ReloadOn(ctx, m.reload) // ends with ctx
	ended := make(chan struct{})
	m.ended = ended
	go func() { // ends when all has that ends with ctx; awaited by who leads next, and by Run
		defer close(ended)
		err := s.Run(ctx)
		if errors.Is(err, replica.ErrLost) {
			err = nil
		}
		others.Close()
		if err = errors.Join(err, s.Close()); err != nil {
			m.broken <- fmt.Errorf("lead: %w", err)
		}
	}()
	err = m.resign(ctx, s.loop)
	stop()
	<-s.loop.Ended()
	m.log.Info("this controller does not lead any more", "after", time.Since(began).Round(time.Millisecond))
	m.goOn(s.loop)
	return err
}

// goOn has this member follow on with the jobs that it had when it led.
func (m *Member) goOn(l *loop.Loop) {
	began := time.Now()
	_, before := m.jobs.Counts()
	jobs, unread, err := l.Left()
	if err == nil {
		err = m.replica.Read(func(s *store.Store) error { return m.jobs.GoOn(s, jobs, unread) })
	}
	if err != nil {
		m.log.Warn("the records of all jobs are read again", "error", err)
		return
	}
	has, read := m.jobs.Counts()
	m.log.Info("this controller follows with the jobs that it has", "jobs", has, "read", read-before, "ms", time.Since(began).Milliseconds())
}

// resign waits until this member does not lead any more, or again: another one may have led
// between. An error is why it cannot go on at all.
func (m *Member) resign(ctx context.Context, l *loop.Loop) error {
	select {
	case <-ctx.Done():
	case <-l.Ended():
	case <-m.replica.Leads():
	case err := <-m.replica.Failed():
		return fmt.Errorf("lead: %w", err)
	}
	return nil
}
