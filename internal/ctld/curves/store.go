package curves

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"gbatch/internal/node"
	"gbatch/oci/atomicfile"
)

// Key names a rank in one attempt of a job.
type Key struct {
	User          string
	UUID          string // of the job
	Attempt, Rank uint32
}

// path is the file of a rank below the store's directory. Users come from anywhere:
// their directories are named by a hash.
func (k Key) path() string {
	sum := sha256.Sum256([]byte(k.User))
	return filepath.Join(hex.EncodeToString(sum[:12]), fmt.Sprintf("%s.%d.%d", k.UUID, k.Attempt, k.Rank))
}

// Config is what a store is made of.
type Config struct {
	Dir  string
	Most func() int64 // bytes on the disk; 0: nothing is kept
	Room func() bool  // whether the disk has room for more
	Now  func() time.Time
	Log  *slog.Logger
}

// Store has the curves of all ranks: of those that run in memory, of all on the disk.
type Store struct {
	Config

	mu   sync.Mutex
	live map[Key]*live
}

// live is a rank of which its node has spoken lately.
type live struct {
	series *series
	last   *node.LiveUse // nil: nothing since it was read
	heard  time.Time
	saved  time.Time // or begun
}

// Open makes the directory. Without one there are no curves: nothing else needs them.
func Open(c Config) *Store {
	if err := atomicfile.Dir(c.Dir, 0o700, c.Log); err != nil {
		c.Log.Error("no curves can be kept", "error", err)
	}
	return &Store{Config: c, live: map[Key]*live{}}
}

// Put takes a node's word on what a rank has used. What it says again is taken once.
func (s *Store) Put(k Key, u *node.LiveUse) {
	if u.AtMS == 0 || s.Most() == 0 {
		return
	}
	var before *series
	if !s.has(k) {
		before = s.read(k) // it was here before this controller began, or was silent for long
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l, now := s.live[k], s.Now()
	if l == nil {
		if before == nil {
			before = &series{}
		}
		l = &live{series: before, saved: now}
		s.live[k] = l
	}
	l.heard = now
	if l.last != nil && l.last.AtMS == u.AtMS {
		return
	}
	l.series.add(now.Unix(), values(l.last, u))
	was := *u
	l.last = &was
}

func (s *Store) has(k Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live[k] != nil
}

// values are those of what a rank has used since its node spoke last; a counter that
// went back says nothing.
func values(was, is *node.LiveUse) Values {
	v := Values{}
	for k := range v {
		v[k] = math.NaN()
	}
	v[Mem] = float64(is.Mem)
	if is.GPUMem != nil {
		v[GPUMem] = float64(*is.GPUMem)
	}
	if was == nil {
		was = &node.LiveUse{AtMS: is.AtMS}
	}
	s := float64(is.AtMS-was.AtMS) / 1000
	rate := func(k Kind, before, now, scale float64) {
		if s > 0 && now >= before {
			v[k] = (now - before) / s * scale
		}
	}
	rate(CPU, was.CPUSeconds, is.CPUSeconds, 1000)
	if a, b := was.Net, is.Net; a != nil && b != nil {
		rate(Received, float64(a.Received), float64(b.Received), 1)
		rate(Sent, float64(a.Sent), float64(b.Sent), 1)
	}
	if b := is.GPU; b != nil {
		a := was.GPU
		if a == nil {
			a = &node.GPUUse{}
		}
		if n := b.Samples - a.Samples; n > 0 {
			v[GPU] = min(max((b.Utilization*float64(b.Samples)-a.Utilization*float64(a.Samples))/float64(n), 0), 100)
		}
		if b.EnergyJ > 0 && was.GPU != nil {
			rate(Power, a.EnergyJ, b.EnergyJ, 1)
		}
	}
	return v
}

// Of is the curve of a rank; nil without an error: nothing is known of it.
func (s *Store) Of(k Key) *Curve {
	s.mu.Lock()
	var is *series
	if l := s.live[k]; l != nil {
		is = l.series.clone()
	}
	s.mu.Unlock()
	if is == nil {
		if is = s.read(k); is == nil {
			return nil
		}
	}
	return is.curve()
}

// read is what is stored of a rank; nil: nothing, or nothing that can be read.
func (s *Store) read(k Key) *series {
	raw, err := os.ReadFile(filepath.Join(s.Dir, k.path()))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var out *series
	if err == nil {
		out, err = decode(raw)
	}
	if err != nil {
		s.Log.Warn("read what a rank used", "job", k.UUID, "attempt", k.Attempt, "rank", k.Rank, "error", err)
	}
	return out
}

// A rank of which nothing is heard for quietFor is saved and leaves the memory;
// one that runs on is saved each saveEvery, which is what a crash may lose.
const (
	lookEvery  = 30 * time.Second
	quietFor   = 2 * time.Minute
	saveEvery  = 10 * time.Minute
	pruneEvery = time.Hour
)

// Run saves what is new and keeps all within its bound, until ctx is done.
func (s *Store) Run(ctx context.Context) {
	every := time.NewTicker(lookEvery)
	defer every.Stop()
	s.prune()
	for pruned := s.Now(); ; {
		select {
		case <-ctx.Done():
			s.save(true)
			return
		case <-every.C:
		}
		s.save(false)
		if now := s.Now(); now.Sub(pruned) >= pruneEvery {
			s.prune()
			pruned = now
		}
	}
}

// save writes what is due; all: everything.
func (s *Store) save(all bool) {
	if !s.Room() {
		return // it stays in memory until there is room, or is forgotten with this process
	}
	due := map[Key][]byte{}
	s.mu.Lock()
	now := s.Now()
	for k, l := range s.live {
		quiet := now.Sub(l.heard) >= quietFor
		if all || quiet || now.Sub(l.saved) >= saveEvery {
			due[k], l.saved = l.series.encode(), now
		}
	}
	s.mu.Unlock()
	for k, raw := range due {
		path := filepath.Join(s.Dir, k.path())
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil {
			err = atomicfile.Write(path, raw)
		}
		if err != nil {
			s.Log.Error("what ranks used cannot be stored; it is tried again", "error", err)
			return
		}
		s.forget(k, now)
	}
}

// forget drops a rank that was saved from memory if it has been quiet.
func (s *Store) forget(k Key, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.live[k]; l != nil && now.Sub(l.heard) >= quietFor {
		delete(s.live, k)
	}
}
