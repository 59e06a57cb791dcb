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
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/oci/atomicfile"
	"gbatch/oci/treesum"
)

// Cache keeps what was fetched for others. An entry is found by who shares it,
// the URI and what the source says is there now: whoever asks has to be let in
// by the source first, and a change there makes another entry.
type Cache struct {
	dir   string
	max   int64
	found func(Damage)

	mu    sync.Mutex // guards what follows
	holds map[string]map[string]bool
	busy  map[string]chan struct{} // closed when who fetches an entry is done
}

// OpenCache opens or makes a cache of at most so many bytes. It tells found which entry
// was damaged when somebody asked for it; those that Verify finds it gives to its caller.
func OpenCache(dir string, maxBytes int64, found func(Damage)) (*Cache, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open cache of inputs: %w", err)
	}
	return &Cache{dir: dir, max: maxBytes, found: found, holds: map[string]map[string]bool{}, busy: map[string]chan struct{}{}}, nil
}

// ErrNotCacheable says that the source does not tell one content from another.
var ErrNotCacheable = errors.New("the source does not say when its content changes")

// marker is the file in an entry that says that it is whole, and its size.
const marker = "whole"

// userFile is the file in an entry that says who fetched it, whole or not.
const userFile = "user"

// Caller is who wants something from the cache.
type Caller struct {
	Scope  string // who shares it
	User   string // whose it is, if it is fetched now
	Holder string // who holds it, see Drop
}

// Get gives an entry's key, fetching it if it is not here, and holds it for
// the holder until Drop. Who asks for the same at the same time waits for the
// first. f.Objects is needed.
func (k *Cache) Get(ctx context.Context, c *Client, who Caller, f Fetch) (key string, got Fetched, err error) {
	for _, o := range f.Objects {
		if o.Version == "" && f.SHA256 == "" {
			return "", got, ErrNotCacheable
		}
	}
	key = keyOf(who.Scope, f)
	leave, err := k.enter(ctx, key, who.Holder)
	if err != nil {
		return "", got, err
	}
	defer leave()
	f.Dir = filepath.Join(k.dir, key)
	seal, err := k.sealOf(key)
	switch {
	case err == nil:
		if b, is := f.Source.(*bucket); is {
			if err := k.letIn(ctx, key, b, f.Objects); err != nil {
				k.drop(key, who.Holder)
				return "", got, Name(f.URI, err)
			}
		}
		now := time.Now()
		got = Fetched{Objects: len(f.Objects), Bytes: seal.Bytes, Single: isSingle(f.Objects)}
		return key, got, local(os.Chtimes(filepath.Join(f.Dir, marker), now, now))
	case !errors.Is(err, fs.ErrNotExist):
		d, err := k.dismiss(key, badNote, who.Holder)
		k.found(*d)
		if err != nil {
			k.drop(key, who.Holder)
			return "", got, local(err)
		}
	}
	if err = k.own(f.Dir, who.User); err == nil {
		got, err = c.Fetch(ctx, f)
	}
	if err != nil {
		k.drop(key, who.Holder)
		return "", got, err
	}
	if b, is := f.Source.(*bucket); is {
		if err := k.noteReader(key, b, time.Now()); err != nil {
			return key, got, local(err)
		}
	}
	return key, got, local(k.seal(key, got.Bytes))
}

// own notes whose an entry is.
func (k *Cache) own(dir, user string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return local(err)
	}
	return local(atomicfile.Write(filepath.Join(dir, userFile), []byte(user)))
}

// keyOf names an entry by all that its content depends on. That is the server too, which
// a URI of S3 does not name: a job may name one of its user's own, which says of any object
// that it has it, and would put its bytes in the place of another's or be given those.
func keyOf(scope string, f Fetch) string {
	objects, _ := json.Marshal(f.Objects) // plain strings and numbers
	text := fmt.Appendf(nil, "%q %q %q %s", scope, f.URI, f.SHA256, objects)
	if b, is := f.Source.(*bucket); is {
		text = fmt.Appendf(text, " %q", b.server)
	}
	sum := sha256.Sum256(text)
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

// seal marks an entry as whole once it would survive a power cut.
func (k *Cache) seal(key string, bytes int64) error {
	sum, err := treesum.Of(k.Content(key), treesum.How{})
	if err != nil {
		return err
	}
	dir, err := os.Open(filepath.Join(k.dir, key))
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unix.Syncfs(int(dir.Fd())); err != nil {
		return err
	}
	return k.writeSeal(key, sealed{bytes, sum})
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

// heldLocked says whether somebody may use an entry; one that was set aside is for all who hold the one in its place.
func (k *Cache) heldLocked(key string) bool {
	key, _, _ = strings.Cut(key, asideMark)
	return len(k.holds[key]) > 0
}

// remove removes an entry that nobody holds or fetches.
func (k *Cache) remove(key string) (bool, error) {
	k.mu.Lock()
	if k.heldLocked(key) || k.busy[key] != nil {
		k.mu.Unlock()
		return false, nil
	}
	leave := k.takeLocked(key) // who wants it now waits, and fetches it anew
	k.mu.Unlock()
	defer leave()
	return true, removeEntry(filepath.Join(k.dir, key))
}
