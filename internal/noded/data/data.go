package data

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/internal/job"
	"gbatch/internal/noded/config"
	"gbatch/internal/reach"
	"gbatch/internal/transfer"
	"gbatch/oci/atomicfile"
	"gbatch/oci/rmtree"
)

// Data is what the node has of jobs' inputs: a directory for each rank, which
// outlives a restart of the daemon so that nothing is fetched twice, and the
// cache.
type Data struct {
	cfg    *config.Data
	dir    string // of the ranks' directories
	free   int64  // what must stay free
	Client *transfer.Client
	cache  *transfer.Cache
	Tree   OpenTree // set before the first rank

	mu       sync.Mutex
	promised int64 // bytes that are still to come, of all ranks
}

// Open opens the directory. What was there before the machine's start may
// be cut off, and belongs to ranks that are gone.
//
// What is found damaged in the cache is told to log, and its number to damaged.
func Open(c *config.Config, boot string, log *slog.Logger, damaged func(n int)) (*Data, error) {
	d := &Data{cfg: &c.Data, dir: filepath.Join(c.Data.Dir, "ranks"), free: int64(c.MinFree)}
	client, err := newClient(&c.Data)
	if err != nil {
		return nil, err
	}
	d.Client = client
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of inputs: %w", err)
	}
	if err := d.startIn(boot, log); err != nil {
		return nil, err
	}
	d.cache, err = transfer.OpenCache(filepath.Join(c.Data.Dir, "cache"), int64(c.Data.CacheSize), func(x transfer.Damage) {
		logDamage(log, x)
		damaged(1)
	})
	return d, err
}

// startIn sees to it that nothing is gone on with that came in another boot. A file says in which boot the last
// daemon was. Where that cannot be read, ranks that run may be using what is there: it stays
// for them, and each that is still to start has its inputs fetched anew.
func (d *Data) startIn(boot string, log *slog.Logger) error {
	mark := filepath.Join(d.cfg.Dir, "boot")
	last, err := atomicfile.Read(mark)
	switch known := len(last) == len(boot); { // all that the kernel gives are as long
	case err == nil && string(last) == boot:
		return nil // nothing is written: a full disk must not keep the daemon from what runs
	case err == nil && known:
		err = errors.Join(os.RemoveAll(d.dir), os.Mkdir(d.dir, 0o700))
	default:
		if !errors.Is(err, fs.ErrNotExist) {
			log.Error("the note of the boot in which inputs were fetched is damaged: what ranks have not begun with is fetched anew", "file", mark)
		}
		err = d.distrust()
	}
	if err != nil {
		return fmt.Errorf("empty the directory of inputs: %w", err)
	}
	if err := atomicfile.Write(mark, atomicfile.Sum([]byte(boot))); err != nil {
		return fmt.Errorf("make the directory of inputs: %w", err)
	}
	return nil
}

// distrust has no transfer for a rank go on with what is there, and removes none of its files.
func (d *Data) distrust() error {
	dirs, err := filepath.Glob(filepath.Join(d.dir, "*", "*"))
	for _, dir := range dirs {
		err = errors.Join(err, transfer.Forget(dir))
	}
	return err
}

// client is what transfers for jobs.
func newClient(c *config.Data) (*transfer.Client, error) {
	g := reach.Guard{Hosts: c.Hosts, PlainHTTP: c.PlainHTTP}
	if u, err := url.Parse(c.Endpoint); err == nil && u.Host != "" {
		port := u.Port()
		if port == "" {
			port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
		}
		g.Hosts = append(g.Hosts[:len(g.Hosts):len(g.Hosts)], net.JoinHostPort(u.Hostname(), port)) // and no other service there
	}
	t := transfer.New(g)
	t.Parallel, t.Stall = c.Parallel, time.Duration(c.Stall)
	if c.CAFile == "" {
		return t, nil
	}
	pem, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read data.caFile: %w", err)
	}
	t.Roots = x509.NewCertPool()
	if !t.Roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read data.caFile %s: it holds no PEM certificate", c.CAFile)
	}
	return t, nil
}

// RankDir is where a rank's inputs are that no other has.
func (d *Data) RankDir(id job.RankID) string { return filepath.Join(d.dir, id.String()) }

// Drop forgets the inputs of a rank that has ended.
func (d *Data) Drop(id job.RankID) error {
	d.cache.Drop(id.String())
	return rmtree.Remove(d.RankDir(id))
}

// promise asks for room for bytes that are to come, or -1 if nobody knows how
// many. What is kept for other jobs makes way.
func (d *Data) promise(bytes int64) (done func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	left, err := d.left()
	if err == nil && left < max(bytes, 0) {
		_, _ = d.cache.MakeRoom(time.Now(), bytes-left) // what it could not remove is not room
		left, err = d.left()
	}
	if err != nil {
		return nil, fmt.Errorf("look for free space: %w", err)
	}
	if left < max(bytes, 0) {
		return nil, transfer.At(transfer.Local, "", fmt.Sprintf("needs %s, and the node has %s free", config.FormatBytes(bytes), config.FormatBytes(max(left, 0))))
	}
	d.promised += max(bytes, 0)
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.promised -= max(bytes, 0)
	}, nil
}

func (d *Data) left() (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(d.dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail)*st.Bsize - d.free - d.promised, nil
}

// Sweep removes directories of ranks that are not held, which nobody orders any
// more, and shrinks the cache. Without held it is not known yet who is ordered.
func (d *Data) Sweep(held map[string]bool) (freed int64, err error) {
	entries, err := os.ReadDir(d.dir)
	if err == nil && held != nil {
		for _, e := range entries {
			if !held[e.Name()] {
				err = errors.Join(err, rmtree.Remove(filepath.Join(d.dir, e.Name())))
			}
		}
	}
	freed, cerr := d.cache.Collect(time.Now())
	return freed, errors.Join(err, cerr)
}

// Hold keeps an input in the cache for a rank that was taken over.
func (d *Data) Hold(key string, id job.RankID) { d.cache.Hold(key, id.String()) }

// Scrub reads all cached inputs from the disk, at pace, and logs those that were damaged, with the ranks that may have
// read of them: they go on, and nobody else gets these. It says how many there were.
func (d *Data) Scrub(log *slog.Logger, pace func(bytes int64) error) (int, error) {
	found, err := d.cache.Verify(pace)
	for _, x := range found {
		logDamage(log, x)
	}
	return len(found), err
}

func logDamage(log *slog.Logger, d transfer.Damage) {
	log.Error("a cached input was damaged on the disk: it is fetched again for the next job that needs it; jobs that use it may have read what was damaged",
		"input", d.Key, "why", d.Why, "jobs", d.Held)
}
