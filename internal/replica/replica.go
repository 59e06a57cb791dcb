package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"

	"gbatch/internal/store"
)

// Config is one member.
type Config struct {
	Name     string        // among the members
	Address  string        // HOST:PORT by which the others reach it
	Dir      string        // of the common log
	Store    store.Config  // of its store
	Listener net.Listener  // for the others, who have shown that they are members
	Dial     Dialer        // to the others
	Patience time.Duration // how long who leads may be silent; 0: defaultPatience
	Copy     int           // so many entries behind the last copy of the store another one is due, for tests; 0: copyAfter, after a pause
	NowMS    func() int64  // the clock of the controller while it leads
	Log      *slog.Logger
}

// defaultPatience is long for a network in one building, and short for those who wait.
const defaultPatience = 400 * time.Millisecond

// Dialer connects to another member.
type Dialer func(address string, timeout time.Duration) (net.Conn, error)

// Replica is this member's part in the common log. Its methods are safe for concurrent use.
type Replica struct {
	cfg   Config
	raft  *raft.Raft
	fsm   *Machine
	wal   *wal.WAL
	trans *exchanges

	ended   chan struct{} // a connection from another member has
	lacks   chan struct{} // one that stands lacks an entry which this one has
	unwatch func()        // ends watch, and waits for it
	elected elected
}

// Open opens this member's store and log. Where there is no log yet, this is the first
// member: its store, which is made if there is none, is what the others will get. The listener is the
// replica's from here on: it is closed where this fails.
func Open(c Config) (*Replica, error) {
	r := &Replica{cfg: c, fsm: newMachine(c.Store, c.Log), ended: make(chan struct{}, 1), lacks: make(chan struct{}, 1), unwatch: func() {}}
	r.trans = newExchanges(raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: stream{c.Listener, c.Dial, r.ended}, MaxPool: maxKept, Timeout: 10 * time.Second, Logger: r.logger(),
	}))
	if err := r.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("open the log that the controllers have in common, %s: %w", c.Dir, err), r.Close())
	}
	return r, nil
}

func (r *Replica) open() error {
	origin, err := r.fsm.Begin(kept{r})
	if err == nil && origin == OfNobody {
		err = r.found()
	}
	if err != nil {
		return err
	}
	if err := r.ownLog(); err != nil {
		return err
	}
	if err := r.passOver(); err != nil {
		return err
	}
	snaps, err := openCopies(r.cfg.Dir, r.logger())
	if err != nil {
		return err
	}
	from, err := joinedBy(r.cfg.Dir)
	if err != nil {
		return err
	}
	r.fsm.clock.goOn(filepath.Join(r.cfg.Dir, heardFile))
	conf := r.raftConfig()
	conf.NoSnapshotRestoreOnStart = origin != OfCopy
	if err := r.newRaft(conf, snaps, ballots{r.wal, r.fsm, from}); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	var watches sync.WaitGroup
	watches.Go(func() { r.watch(ctx) })         // ends in Close
	watches.Go(func() { r.noteElections(ctx) }) // ends in Close
	watches.Go(func() { r.makeCopies(ctx) })    // ends in Close
	r.unwatch = func() { stop(); watches.Wait() }
	return nil
}

func (r *Replica) patience() time.Duration { return cmp.Or(r.cfg.Patience, defaultPatience) }

// founding follows the name of the log's directory while it is being made.
const founding = ".new"

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// found makes a log whose only member this is, and whose beginning is its store.
func (r *Replica) found() (err error) {
	dir := r.cfg.Dir + founding // from here on, what is broken off is begun anew
	if err := errors.Join(os.RemoveAll(dir), MakeDir(dir, 0), syncDir(filepath.Dir(dir))); err != nil {
		return err
	}
	if err := store.Found(r.cfg.Store); err != nil {
		return err
	}
	if r.fsm.st, err = store.OpenMember(r.cfg.Store); err != nil {
		return err
	}
	log, err := r.openLog(dir)
	if err != nil {
		return err
	}
	snaps, err := openCopies(dir, r.logger())
	if err != nil {
		return errors.Join(err, log.Close())
	}
	alone := raft.Configuration{Servers: []raft.Server{{ID: raft.ServerID(r.cfg.Name), Address: raft.ServerAddress(r.cfg.Address)}}}
	if err = raft.BootstrapCluster(r.raftConfig(), log, log, snaps, r.trans, alone); err == nil {
		err = r.foundingTerm(log)
	}
	if err == nil {
		// Makes a snapshot of the store and drops the log before it, so that members that
		// join get the store and not the log alone.
		err = raft.RecoverCluster(r.raftConfig(), r.fsm, log, log, snaps, r.trans, alone)
	}
	if err = errors.Join(err, log.Close()); err != nil {
		return err
	}
	return errors.Join(os.Rename(dir, r.cfg.Dir), syncDir(filepath.Dir(r.cfg.Dir)))
}

// foundingTerm begins the log with a term that no log which was founded before has come to. Else a member that
// was emptied or restored from a backup would take the entries of the others for a continuation of its own,
// on a store that they do not belong to, and its word would count. As it is, its log is newer than any of
// theirs, so it lets nobody lead, and takes nothing from whoever leads: it has to be added again.
func (r *Replica) foundingTerm(log *wal.WAL) error {
	term := uint64(max(2, r.cfg.NowMS()/1000)) // no site elects more than once a second
	return errors.Join(log.StoreLog(&raft.Log{Index: 2, Term: term, Type: raft.LogNoop}), log.SetUint64([]byte("CurrentTerm"), term))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// ownLog opens this member's log, unless it is open.
func (r *Replica) ownLog() (err error) {
	if r.wal == nil {
		r.wal, err = r.openLog(r.cfg.Dir)
	}
	return err
}

// openLog opens a log on disk.
func (r *Replica) openLog(dir string) (log *wal.WAL, err error) {
	meta := &metaFile{log: r.cfg.Log} // the log closes it, but where it cannot be opened
	defer func() {
		if why := recover(); why != nil { // the library's, at a file of an earlier version that is damaged
			err = fmt.Errorf("%w: %v", wal.ErrCorrupt, why)
		}
		if err != nil {
			err = errors.Join(unreadable(err), meta.Close())
		}
	}()
	return wal.Open(filepath.Join(dir, logDir), wal.WithMetaStore(meta), wal.WithLogger(r.logger()))
}

// unreadable says what to do about a log that cannot be opened, but where that is for its disk.
func unreadable(err error) error {
	if disk := (*fs.PathError)(nil); errors.As(err, &disk) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fmt.Errorf("%w: %s", err, again)
}

// newRaft begins to take part. The library panics where the log on disk has
// entries that cannot be read.
func (r *Replica) newRaft(conf *raft.Config, snaps raft.SnapshotStore, stable raft.StableStore) (err error) {
	defer func() {
		if why := recover(); why != nil {
			err = fmt.Errorf("the common log in %s cannot be read: %v. Take this controller out by `gadm controllers remove %s` on another one, empty its directory, and add it again (docs/controllers.md)", r.cfg.Dir, why, r.cfg.Name)
		}
	}()
	r.raft, err = raft.NewRaft(conf, r.fsm, heard{r.wal, r.fsm, kept{r}.Copy}, stable, snaps, r.trans)
	select {
	case why := <-r.fsm.failed: // the library only says that the last copy of a store cannot be loaded
		err = errors.Join(err, why)
	default:
	}
	return err
}

// logDir is where a directory of the common log has its entries.
const logDir = "wal"

func (r *Replica) raftConfig() *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(r.cfg.Name)
	c.HeartbeatTimeout = r.patience()
	c.ElectionTimeout = c.HeartbeatTimeout
	c.LeaderLeaseTimeout = c.HeartbeatTimeout * 3 / 4
	c.CommitTimeout = 20 * time.Millisecond
	c.SnapshotInterval, c.TrailingLogs = 365*24*time.Hour, entriesKept // see makeCopies
	c.ShutdownOnRemove = false
	c.NoLegacyTelemetry = true
	c.Logger = r.logger()
	return c
}

// logger has the library's words at debug level.
func (r *Replica) logger() hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Name: "replica", Level: hclog.Debug, DisableTime: true, Output: lines{r.cfg.Log}})
}

type lines struct{ log *slog.Logger }

func (l lines) Write(p []byte) (int, error) {
	l.log.Debug("common log", "event", strings.TrimSpace(string(p)))
	return len(p), nil
}

// Close leaves the others, who notice that it is silent, and closes the store.
func (r *Replica) Close() error {
	var errs []error
	r.unwatch()
	if r.raft != nil {
		errs = append(errs, r.raft.Shutdown().Error())
	}
	errs = append(errs, r.trans.Close())
	if r.wal != nil {
		errs = append(errs, r.wal.Close())
	}
	return errors.Join(append(errs, r.fsm.Close())...)
}

// stream is how members talk: TLS on which both have shown who they are.
type stream struct {
	net.Listener
	dial  Dialer
	ended chan<- struct{} // for each connection from another member
}

// Dial connects to another member.
func (s stream) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	return s.dial(string(address), timeout)
}

// Read lets f read this member's store, if one has come yet. It is not replaced meanwhile.
func (r *Replica) Read(f func(*store.Store) error) error { return r.fsm.Read(f) }
