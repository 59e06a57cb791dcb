package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"gbatch/oci/atomicfile"
	"gbatch/oci/boot"
	"gbatch/oci/image/layout"
	"gbatch/oci/image/share"
	"gbatch/oci/treesum"
)

// Store is the images of one node. Its methods may be called at any time from
// any goroutine. Close it.
type Store struct {
	config Config
	key    []byte // of identify
	boot   string // id of the running boot
	lock   *os.File
	layout layout.Layout

	base         context.Context // of all work; ends in Close
	stop         context.CancelFunc
	work         sync.WaitGroup
	pulls        *flights[*Image]
	layerFlights *flights[struct{}]
	disk         *disk
	workers      *workers
	spool        *share.Spool                                      // of compressed layers, for other nodes
	lends        atomic.Int64                                      // numbers what is lent to workers
	treeSum      func(dir string, how treesum.How) (string, error) // by which Verify reads a layer

	mu     sync.Mutex
	layers map[string]unpacked // by name of the directory
	images map[string]*record  // by digest
	holds  map[string]hold     // by id
	pins   map[string]int      // layers that a running pull counts on
	said   map[string]said     // by reference and login
}

// Open makes or opens a store, and sweeps what a crash left behind.
func Open(config Config) (*Store, error) {
	config, err := config.complete()
	if err != nil {
		return nil, fmt.Errorf("open image store: %w", err)
	}
	s := &Store{
		config: config, layout: layout.New(config.Dir),
		layers: map[string]unpacked{}, images: map[string]*record{}, holds: map[string]hold{},
		pins: map[string]int{}, said: map[string]said{}, treeSum: treesum.Of,
	}
	s.base, s.stop = context.WithCancel(context.Background())
	s.pulls = newFlights[*Image](s.base, &s.work)
	s.layerFlights = newFlights[struct{}](s.base, &s.work)
	s.disk = newDisk(s.layout.Tmp, config)
	s.spool = share.New(s.layout.Tmp, share.Bounds{Bytes: config.Peers.Keep, Age: config.Peers.KeepFor}, config.Now)
	s.disk.shed = s.spool.Shed
	s.workers = newWorkers(s.base, s.layout.Workers, config, s.disk)
	if err := s.load(); err != nil {
		s.Close()
		return nil, fmt.Errorf("open image store %s: %w", config.Dir, err)
	}
	return s, nil
}

// Close ends running pulls and waits for them. Layers stay mounted where they
// are; they are just directories.
func (s *Store) Close() error {
	s.stop()
	s.workers.end()
	s.work.Wait()
	s.workers.serving.Wait()
	s.spool.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil {
		return nil // closed before, or never opened
	}
	defer func() { s.lock = nil }()
	return s.lock.Close()
}

func (s *Store) load() error {
	if err := os.MkdirAll(s.config.Dir, 0o700); err != nil {
		return err
	}
	// An older directory may have been made with another mode.
	if err := os.Chmod(s.config.Dir, 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(s.config.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		return fmt.Errorf("another process uses it: %w", err)
	}
	s.lock = lock
	if s.boot, err = boot.ID(); err != nil {
		return err
	}
	if err := s.layout.Make(); err != nil {
		return err
	}
	if s.key, err = loadKey(s.config.Dir); err != nil {
		return err
	}
	return errors.Join(s.loadImages(), s.loadHolds(), s.loadLayers())
}

// loadLayers wants the images to be loaded: it sweeps layers which none uses
// and which a crash of the machine may have left incomplete. What was held then
// runs no more.
func (s *Store) loadLayers() error {
	used := s.usedLayersLocked()
	entries, err := os.ReadDir(s.layout.Layers)
	if err != nil {
		return err
	}
	for _, e := range entries {
		var info unpacked
		err := atomicfile.ReadJSON(s.layout.Marker(e.Name()), &info)
		switch {
		case isAside(e.Name()): // GC removes it when no hold has it
		case err != nil:
			if err := s.dismissLocked(e.Name()); err != nil {
				return err
			}
			continue
		case info.Boot != s.boot && !used[e.Name()]:
			if err := s.layout.Discard(s.layout.Layer(e.Name())); err != nil {
				return err
			}
			continue
		}
		s.layers[e.Name()] = info
	}
	return s.layout.Sweep()
}

// writeFile replaces a file as a whole or not at all, and durably.
func writeFile(name string, content []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(name), ".new-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // fails after the rename, as it should
	_, err = tmp.Write(content)
	if err == nil {
		err = tmp.Sync()
	}
	if err := errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), name)
}

func writeJSON(name string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return writeFile(name, atomicfile.Sum(raw))
}
