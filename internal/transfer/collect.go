package transfer

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// keepPart is how long what was fetched in part only is kept to be gone on with.
const keepPart = 24 * time.Hour

// Collect removes entries until the rest fits, and never what is held: of the user
// who has most, what was not used for longest. So nobody's inputs, nor those that
// never came whole, drive out those of others. It returns the bytes that it freed.
func (k *Cache) Collect(now time.Time) (freed int64, err error) {
	return k.shrink(now, func(all, _ int64) int64 { return all - k.max })
}

// MakeRoom removes entries in the same way until so many bytes are free, and
// none if all of them would not do.
func (k *Cache) MakeRoom(now time.Time, bytes int64) (freed int64, err error) {
	return k.shrink(now, func(_, unused int64) int64 {
		if unused < bytes {
			return 0
		}
		return bytes
	})
}

// kept is an entry, whole or in part.
type kept struct {
	key   string
	user  string
	used  time.Time
	bytes int64
	held  bool
}

// shrink removes entries until so much is freed as much says of what all of them
// take, and those that are not in use.
func (k *Cache) shrink(now time.Time, much func(all, unused int64) int64) (freed int64, err error) {
	items, err := k.kept(now)
	var all, unused int64
	has := map[string]int64{}
	for _, it := range items {
		all += it.bytes
		has[it.user] += it.bytes
		if !it.held {
			unused += it.bytes
		}
	}
	items = slices.DeleteFunc(items, func(it kept) bool { return it.held })
	for need := much(all, unused); freed < need && len(items) > 0; {
		i := victim(items, has)
		it := items[i]
		items = slices.Delete(items, i, i+1)
		has[it.user] -= it.bytes
		gone, rerr := k.remove(it.key)
		err = errors.Join(err, rerr)
		if gone {
			freed += it.bytes
		}
	}
	return freed, err
}

// victim is the first of the items of who has most.
func victim(items []kept, has map[string]int64) int {
	at := 0
	for i, it := range items {
		if has[it.user] > has[items[at].user] {
			at = i
		}
	}
	return at
}

// kept is what there is, first what was not used for longest, but for what is
// fetched now: room was promised for it.
func (k *Cache) kept(now time.Time) (items []kept, err error) {
	entries, err := os.ReadDir(k.dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		dir := filepath.Join(k.dir, e.Name())
		it := kept{key: e.Name()}
		var busy bool
		if it.held, busy = k.inUse(it.key); busy {
			continue
		}
		if strings.Contains(it.key, asideMark) && !it.held {
			_, rerr := k.remove(it.key)
			err = errors.Join(err, rerr)
			continue
		}
		if user, uerr := os.ReadFile(filepath.Join(dir, userFile)); uerr == nil {
			it.user = string(user)
		}
		st, serr := os.Stat(filepath.Join(dir, marker))
		switch {
		case serr == nil:
			seal, _ := k.sealOf(it.key)
			it.used, it.bytes = st.ModTime(), seal.Bytes
		case !errors.Is(serr, fs.ErrNotExist):
			err = errors.Join(err, serr)
			continue
		default:
			info, ierr := e.Info()
			if ierr != nil {
				continue
			}
			if now.Sub(info.ModTime()) > keepPart {
				_, rerr := k.remove(it.key)
				err = errors.Join(err, rerr)
				continue
			}
			it.used, it.bytes = info.ModTime(), onDisk(dir)
		}
		items = append(items, it)
	}
	slices.SortFunc(items, func(a, b kept) int { return a.used.Compare(b.used) })
	return items, err
}

func (k *Cache) inUse(key string) (held, busy bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.heldLocked(key), k.busy[key] != nil
}

// onDisk is what the files below a directory take, as far as they can be seen.
func onDisk(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil && unix.Lstat(path, &st) == nil {
			bytes += st.Blocks * 512
		}
		return nil
	})
	return bytes
}
