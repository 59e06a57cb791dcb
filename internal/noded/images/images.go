package images

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"gbatch/internal/job"
	"gbatch/internal/noded/config"
	"gbatch/oci/image"
)

// Holds holds images for the ranks that run on them. There is one hold per
// image and not per rank, and it is only given up before the store is shrunk:
// many short jobs on one image then cost no write to the disk.
type Holds struct {
	Store  *image.Store
	pulled func(took time.Duration, err error) // is told of each pull

	mu   sync.Mutex
	used map[job.RankID][]string // digests
}

// Told is told what pulls cost.
type Told struct {
	Pulled func(took time.Duration, err error)
	Came   func(bytes int64, peer bool) // of layers, and whether from another node
}

func Open(c *config.Config, told Told) (*Holds, error) {
	peers := image.Peers{Came: told.Came}
	if c.Images.Peers.Listen != "" {
		peers.Keep = int64(c.Images.Peers.Keep)
	}
	store, err := image.Open(image.Config{
		Dir:             c.Images.Dir,
		Dial:            dialer(c),
		Insecure:        c.Images.Insecure,
		Mirrors:         c.Images.Mirrors,
		DockerConfigDir: c.Images.DockerConfig,
		CertsDir:        c.Images.CertsDir,
		LocalRoots:      c.Images.LocalRoots,
		PullTimeout:     time.Duration(c.Images.PullTimeout),
		MaxBytes:        int64(c.Images.MaxSize),
		// What is more than may be kept is not worth the disk that it takes.
		MaxUnpackedBytes: max(int64(c.Images.MaxSize), 100<<20),
		MinFree:          int64(c.MinFree),
		Peers:            peers,
	})
	if err != nil {
		return nil, err
	}
	return &Holds{Store: store, pulled: told.Pulled, used: map[job.RankID][]string{}}, nil
}

// Pull brings an image here and holds it until drop.
func (u *Holds) Pull(ctx context.Context, id job.RankID, req image.PullRequest) (*image.Image, error) {
	began := time.Now()
	img, err := u.Store.Pull(ctx, req)
	u.pulled(time.Since(began), err)
	if err != nil {
		return nil, err
	}
	// The store leaves what was just used alone for a minute: no collection
	// can come between the two.
	return img, u.Hold(id, img.Digest)
}

func (u *Holds) Hold(id job.RankID, digest string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	// Also where the store knows the image no more, as its record was damaged: what a rank runs on stays.
	if !slices.Contains(u.used[id], digest) {
		u.used[id] = append(u.used[id], digest)
	}
	return u.Store.Hold(holdName(digest), digest)
}

// Drop says that a rank does not use its images any more.
func (u *Holds) Drop(id job.RankID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.used, id)
}

// dropIf drops those for whom gone says so.
func (u *Holds) dropIf(gone func(job.RankID) bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.used, func(id job.RankID, _ []string) bool { return gone(id) })
}

// Collect gives up holds that no rank needs and shrinks the store.
func (u *Holds) Collect(now time.Time) (image.Collected, error) {
	u.mu.Lock()
	needed := map[string]bool{}
	for _, digests := range u.used {
		for _, digest := range digests {
			needed[digest] = true
		}
	}
	var errs []error
	for name, digest := range u.Store.Holds() {
		if strings.HasPrefix(name, holdPrefix) && !needed[digest] {
			errs = append(errs, u.Store.Release(name))
		}
	}
	u.mu.Unlock()
	done, err := u.Store.GC(now)
	return done, errors.Join(append(errs, err)...)
}

const holdPrefix = "ranks/"

func holdName(digest string) string { return filepath.Join(holdPrefix, digest) }

func (u *Holds) Close() error { return u.Store.Close() }

// Progress says how far a pull is, to its user.
func Progress(p image.Progress) string {
	switch {
	case p.Phase == image.PhaseResolve:
		return "asking the registry"
	case p.Phase == image.PhaseUnpack:
		return fmt.Sprintf("unpacking, %d of %d layers", p.LayersDone, p.Layers)
	case p.Total > 0:
		return fmt.Sprintf("pulling %s of %s", config.FormatBytes(p.Bytes), config.FormatBytes(p.Total))
	}
	return ""
}
