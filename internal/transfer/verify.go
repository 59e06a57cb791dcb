package transfer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gbatch/oci/atomicfile"
	"gbatch/oci/treesum"
)

// An entry of the cache has a sum of its files, made when they had come and were still in memory. Verify compares
// it with what the disk has. Who uses a damaged entry keeps its files, under another name; nobody else gets them.

// sealed is what the file in an entry says that makes it whole.
type sealed struct {
	Bytes int64  `json:"bytes"`
	Sum   string `json:"sum"` // of treesum; empty: an earlier version fetched it
}

// sealOf reads that file. It wraps fs.ErrNotExist where the entry is not whole.
func (k *Cache) sealOf(key string) (s sealed, err error) {
	name := filepath.Join(k.dir, key, marker)
	b, err := atomicfile.Read(name)
	if err != nil {
		return s, err
	}
	if s.Bytes, err = strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil {
		return s, nil // of an earlier version
	}
	s = sealed{}
	return s, json.Unmarshal(b, &s)
}

func (k *Cache) writeSeal(key string, s sealed) error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(k.dir, key, marker), atomicfile.Sum(b))
}

// Damage is an entry that the disk has changed.
type Damage struct {
	Key, Why string
	Held     []string // by whom, in order: they may have read of it
}

// Verify reads all whole entries from the disk, and says which were damaged. It tells pace how much it has read,
// which may wait; its error ends the work. An entry that cannot be looked at now keeps it from no other.
func (k *Cache) Verify(pace func(bytes int64) error) (all []Damage, err error) {
	entries, err := os.ReadDir(k.dir)
	if err != nil {
		return nil, fmt.Errorf("verify inputs: %w", err)
	}
	var ended, first error
	for _, e := range entries {
		key := e.Name()
		if _, err := k.sealOf(key); errors.Is(err, fs.ErrNotExist) || strings.Contains(key, asideMark) {
			continue
		}
		d, err := k.verify(key, func(bytes int64) error { ended = pace(bytes); return ended })
		if d != nil {
			all = append(all, *d)
		}
		if ended != nil {
			return all, ended
		}
		if err != nil {
			first = cmp.Or(first, fmt.Errorf("verify input %s: %w", key, err))
		}
	}
	return all, first
}

func (k *Cache) verify(key string, pace func(bytes int64) error) (*Damage, error) {
	before, err := os.Lstat(k.Content(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // removed meanwhile
	}
	sum, broken := treesum.Of(k.Content(key), treesum.How{Disk: true, Pace: pace})
	if broken != nil && !treesum.Broken(broken) {
		return nil, broken
	}
	k.mu.Lock()
	if k.busy[key] != nil { // somebody takes it now, or removes it: it is looked at the next time
		k.mu.Unlock()
		return nil, nil
	}
	leave := k.takeLocked(key)
	k.mu.Unlock()
	defer leave()
	if now, err := os.Lstat(k.Content(key)); err != nil || !os.SameFile(before, now) {
		return nil, nil
	}
	s, err := k.sealOf(key)
	switch {
	case err != nil:
		return k.dismiss(key, badNote, "")
	case broken != nil:
		return k.dismiss(key, broken.Error(), "")
	case s.Sum == "": // what it is now is all that is known
		s.Sum = sum
		return nil, k.writeSeal(key, s)
	case s.Sum != sum:
		return k.dismiss(key, "its files are not what they were when they came", "")
	}
	return nil, nil
}

// badNote is why an entry is not used whose file that says that it is whole cannot be read.
const badNote = "the note that it is whole is damaged"

// asideMark is in the names of entries that were set aside for those who hold the entry of the name before it.
const asideMark = "-damaged-"

// dismiss takes an entry out of use, which the caller has taken. Files that others than one holder may use stay for them.
func (k *Cache) dismiss(key, why, but string) (*Damage, error) {
	k.mu.Lock()
	held := maps.Clone(k.holds[key])
	k.mu.Unlock()
	delete(held, but)
	d := &Damage{Key: key, Why: why, Held: slices.Sorted(maps.Keys(held))}
	if len(held) == 0 {
		return d, removeEntry(filepath.Join(k.dir, key))
	}
	aside, err := os.MkdirTemp(k.dir, key+asideMark)
	if err == nil {
		err = os.Remove(aside)
	}
	if err == nil {
		err = os.Rename(filepath.Join(k.dir, key), aside)
	}
	return d, err
}

// removeEntry removes the marker first: half an entry is none.
func removeEntry(dir string) error {
	if err := os.Remove(filepath.Join(dir, marker)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(dir)
}
