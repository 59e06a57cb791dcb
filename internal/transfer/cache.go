package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/oci/atomicfile"
)

// Cache keeps what was fetched for others. An entry is found by who shares it,
// the URI and what the source says is there now: whoever asks has to be let in
// by the source first, and a change there makes another entry.
type Cache struct {
	dir string
	max int64

	mu    sync.Mutex // guards what follows
	holds map[string]map[string]bool
	busy  map[string]chan struct{} // closed when who fetches an entry is done
}

// OpenCache opens or makes a cache of at most so many bytes.
func OpenCache(dir string, maxBytes int64) (*Cache, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open cache of inputs: %w", err)
	}
	return &Cache{dir: dir, max: maxBytes, holds: map[string]map[string]bool{}, busy: map[string]chan struct{}{}}, nil
}

// ErrNotCacheable says that the source does not tell one content from another.
var ErrNotCacheable = errors.New("the source does not say when its content changes")

// marker is the file in an entry that says that it is whole, and its size.
const marker = "whole"

// Get gives an entry's key, fetching it if it is not here, and holds it for
// holder until Drop. Who asks for the same at the same time waits for the first.
// f.Objects is needed.
func (k *Cache) Get(ctx context.Context, c *Client, scope, holder string, f Fetch) (key string, got Fetched, err error) {
	for _, o := range f.Objects {
		if o.Version == "" && f.SHA256 == "" {
			return "", got, ErrNotCacheable
		}
	}
	key = keyOf(scope, f)
	leave, err := k.enter(ctx, key, holder)
	if err != nil {
		return "", got, err
	}
	defer leave()
	f.Dir = filepath.Join(k.dir, key)
	if got, ok := k.whole(key, f.Objects); ok {
		now := time.Now()
		return key, got, local(os.Chtimes(filepath.Join(f.Dir, marker), now, now))
	}
	if got, err = c.Fetch(ctx, f); err != nil {
		k.drop(key, holder)
		return "", got, err
	}
	return key, got, local(k.seal(key, got.Bytes))
}

func keyOf(scope string, f Fetch) string {
	text, _ := json.Marshal(f.Objects) // plain strings and numbers
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %s", scope, f.URI, f.SHA256, text))
	return hex.EncodeToString(sum[:])
}

// enter takes the entry for the caller alone, and holds it.
func (k *Cache) enter(ctx context.Context, key, holder string) (leave func(), err error) {
	for {
		k.mu.Lock()
		wait := k.busy[key]
		if wait == nil {
			defer k.mu.Unlock()
			k.holdLocked(key, holder)
			return k.takeLocked(key), nil
		}
		k.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// takeLocked lets others wait for the entry until leave is called.
func (k *Cache) takeLocked(key string) (leave func()) {
	mine := make(chan struct{})
	k.busy[key] = mine
	return func() {
		k.mu.Lock()
		delete(k.busy, key)
		k.mu.Unlock()
		close(mine)
	}
}

func (k *Cache) whole(key string, list []Object) (Fetched, bool) {
	b, err := os.ReadFile(filepath.Join(k.dir, key, marker))
	n, nerr := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return Fetched{Objects: len(list), Bytes: n, Single: isSingle(list)}, err == nil && nerr == nil
}

// seal marks an entry as whole once it would survive a power cut.
func (k *Cache) seal(key string, bytes int64) error {
	dir, err := os.Open(filepath.Join(k.dir, key))
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unix.Syncfs(int(dir.Fd())); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(k.dir, key, marker), fmt.Appendln(nil, bytes))
}

// Content is where the files of an entry are.
func (k *Cache) Content(key string) string { return filepath.Join(k.dir, key, ContentDir) }

// Hold keeps an entry from being removed, also before it is known to be there.
func (k *Cache) Hold(key, holder string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.holdLocked(key, holder)
}

func (k *Cache) holdLocked(key, holder string) {
	if k.holds[key] == nil {
		k.holds[key] = map[string]bool{}
	}
	k.holds[key][holder] = true
}

// Drop ends all holds of a holder.
func (k *Cache) Drop(holder string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key := range k.holds {
		k.dropLocked(key, holder)
	}
}

func (k *Cache) drop(key, holder string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dropLocked(key, holder)
}

func (k *Cache) dropLocked(key, holder string) {
	delete(k.holds[key], holder)
	if len(k.holds[key]) == 0 {
		delete(k.holds, key)
	}
}

// keepPart is how long what was fetched in part only is kept to be gone on with.
const keepPart = 24 * time.Hour

// Collect removes what was not used for longest until the rest fits, and never
// what is held. It returns the bytes that it freed.
func (k *Cache) Collect(now time.Time) (freed int64, err error) { return k.shrink(now, k.max) }

// Empty removes all that is not held.
func (k *Cache) Empty(now time.Time) (freed int64, err error) { return k.shrink(now, 0) }

func (k *Cache) shrink(now time.Time, limit int64) (freed int64, err error) {
	entries, err := os.ReadDir(k.dir)
	if err != nil {
		return 0, err
	}
	type item struct {
		key   string
		used  time.Time
		bytes int64
	}
	var items []item
	var total int64
	for _, e := range entries {
		st, err := os.Stat(filepath.Join(k.dir, e.Name(), marker))
		if errors.Is(err, fs.ErrNotExist) {
			if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > keepPart {
				_, rerr := k.remove(e.Name())
				err = errors.Join(err, rerr)
			}
			continue
		}
		if err != nil {
			return freed, err
		}
		got, ok := k.whole(e.Name(), nil)
		if !ok {
			got.Bytes = 0
		}
		items = append(items, item{e.Name(), st.ModTime(), got.Bytes})
		total += got.Bytes
	}
	slices.SortFunc(items, func(a, b item) int { return a.used.Compare(b.used) })
	for _, it := range items {
		if total <= limit {
			break
		}
		gone, rerr := k.remove(it.key)
		err = errors.Join(err, rerr)
		if gone {
			total -= it.bytes
			freed += it.bytes
		}
	}
	return freed, err
}

// remove removes an entry that nobody holds or fetches.
func (k *Cache) remove(key string) (bool, error) {
	k.mu.Lock()
	if len(k.holds[key]) > 0 || k.busy[key] != nil {
		k.mu.Unlock()
		return false, nil
	}
	leave := k.takeLocked(key) // who wants it now waits, and fetches it anew
	k.mu.Unlock()
	defer leave()
	// The marker first: half an entry is none.
	dir := filepath.Join(k.dir, key)
	if err := os.Remove(filepath.Join(dir, marker)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return true, os.RemoveAll(dir)
}
