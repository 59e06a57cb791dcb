package noded

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"gbatch/internal/job"
	"gbatch/internal/noded/config"
	"gbatch/oci/image"
)

// imageUse holds images for the ranks that run on them. There is one hold per
// image and not per rank, and it is only given up before the store is shrunk:
// many short jobs on one image then cost no write to the disk.
type imageUse struct {
	store  *image.Store
	pulled func(took time.Duration, err error) // is told of each pull

	mu   sync.Mutex
	used map[job.RankID]string // digest
}

func openImages(c *config.Config, pulled func(time.Duration, error)) (*imageUse, error) {
	store, err := image.Open(image.Config{
		Dir:             c.Images.Dir,
		Insecure:        c.Images.Insecure,
		Mirrors:         c.Images.Mirrors,
		DockerConfigDir: c.Images.DockerConfig,
		CertsDir:        c.Images.CertsDir,
		LocalRoots:      c.Images.LocalRoots,
		PullTimeout:     time.Duration(c.Images.PullTimeout),
		MaxBytes:        int64(c.Images.MaxSize),
	})
	if err != nil {
		return nil, err
	}
	return &imageUse{store: store, pulled: pulled, used: map[job.RankID]string{}}, nil
}

// pull brings an image here and holds it until drop.
func (u *imageUse) pull(ctx context.Context, id job.RankID, req image.PullRequest) (*image.Image, error) {
	began := time.Now()
	img, err := u.store.Pull(ctx, req)
	u.pulled(time.Since(began), err)
	if err != nil {
		return nil, err
	}
	// The store leaves what was just used alone for a minute: no collection
	// can come between the two.
	return img, u.hold(id, img.Digest)
}

func (u *imageUse) hold(id job.RankID, digest string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := u.store.Hold(holdName(digest), digest); err != nil {
		return err
	}
	u.used[id] = digest
	return nil
}

// drop says that a rank does not use its image any more.
func (u *imageUse) drop(id job.RankID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.used, id)
}

// dropIf drops those for whom gone says so.
func (u *imageUse) dropIf(gone func(job.RankID) bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.used, func(id job.RankID, _ string) bool { return gone(id) })
}

// collect gives up holds that no rank needs and shrinks the store.
func (u *imageUse) collect(now time.Time) (image.Collected, error) {
	u.mu.Lock()
	needed := map[string]bool{}
	for _, digest := range u.used {
		needed[digest] = true
	}
	var errs []error
	for name, digest := range u.store.Holds() {
		if strings.HasPrefix(name, holdPrefix) && !needed[digest] {
			errs = append(errs, u.store.Release(name))
		}
	}
	u.mu.Unlock()
	done, err := u.store.GC(now)
	return done, errors.Join(append(errs, err)...)
}

const holdPrefix = "ranks/"

func holdName(digest string) string { return filepath.Join(holdPrefix, digest) }

func (u *imageUse) Close() error { return u.store.Close() }
