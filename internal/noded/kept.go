package noded

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"gbatch/internal/job"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/rank"
	"gbatch/internal/noded/record"
	"gbatch/oci/journal"
)

// keptLogs are the directories of ranks that the controller has released, which
// are kept for their logs.
type keptLogs struct {
	limits config.Logs
	log    *slog.Logger
	gone   func(dir string)         // a log was removed
	needed func(id job.RankID) bool // the journal there is, by ranks that are here

	mu    sync.Mutex
	list  []keptLog // oldest first
	bytes int64     // of all
}

// keptLog is one of them.
type keptLog struct {
	id       job.RankID
	user     string
	dir      string
	released time.Time
	bytes    int64
}

// add notes a kept log, as the newest.
func (k *keptLogs) add(id job.RankID, dir string) {
	l := keptLog{id: id, user: record.UserOf(dir), dir: dir, released: record.ReleasedAt(dir), bytes: keptOverhead}
	if files, err := os.ReadDir(filepath.Join(dir, "box", "log")); err == nil {
		for _, f := range files {
			if info, err := f.Info(); err == nil {
				l.bytes += info.Size()
			}
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "box", journal.File)); err == nil {
		l.bytes += info.Size()
	}
	k.put(l)
}

func (k *keptLogs) put(l keptLog) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = append(k.list, l)
	k.bytes += l.bytes
}

// sort puts the oldest first.
func (k *keptLogs) sort() {
	slices.SortFunc(k.list, func(x, y keptLog) int { return x.released.Compare(y.released) })
}

// remove takes one out; its directory stays.
func (k *keptLogs) remove(dir string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = slices.DeleteFunc(k.list, func(l keptLog) bool {
		if l.dir == dir {
			k.bytes -= l.bytes
		}
		return l.dir == dir
	})
}

func (k *keptLogs) size() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.bytes
}

const (
	maxKept      = 10_000   // ranks with a directory, however small
	keptOverhead = 64 << 10 // what each takes beside its log, about
)

// prune removes kept logs that are too old, and while there are too many the
// oldest of whoever has most: so nobody's output drives out that of others.
func (k *keptLogs) prune(now time.Time) {
	for _, l := range k.surplus(now) {
		if k.needed(l.id) { // what is known of its guests is there
			k.put(l)
			continue
		}
		if err := rank.RemoveDir(l.dir); err != nil {
			k.log.Error("remove kept log", "rank", l.id, "error", err)
		}
		k.gone(l.dir)
	}
}

// surplus takes out what is to be removed.
func (k *keptLogs) surplus(now time.Time) (gone []keptLog) {
	k.mu.Lock()
	defer k.mu.Unlock()
	drop := func(i int) {
		gone = append(gone, k.list[i])
		k.bytes -= k.list[i].bytes
		k.list = slices.Delete(k.list, i, i+1)
	}
	for len(k.list) > 0 && now.Sub(k.list[0].released) > time.Duration(k.limits.Keep) {
		drop(0)
	}
	for {
		amount := func(l keptLog) int64 { return l.bytes }
		if k.bytes <= int64(k.limits.KeepSize) {
			if len(k.list) <= maxKept {
				return gone
			}
			amount = func(keptLog) int64 { return 1 }
		}
		user := mostOf(k.list, amount)
		drop(slices.IndexFunc(k.list, func(l keptLog) bool { return l.user == user }))
	}
}

// mostOf is who has most of the list.
func mostOf(list []keptLog, amount func(keptLog) int64) (user string) {
	has := map[string]int64{}
	for _, l := range list {
		has[l.user] += amount(l)
	}
	for u, n := range has {
		if n > has[user] || n == has[user] && u < user {
			user = u
		}
	}
	return user
}
