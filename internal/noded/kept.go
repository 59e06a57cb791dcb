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
)

// keptLogs are the directories of ranks that the controller has released, which
// are kept for their logs.
type keptLogs struct {
	limits config.Logs
	log    *slog.Logger

	mu    sync.Mutex
	list  []keptLog // oldest first
	bytes int64     // of all
}

// keptLog is one of them.
type keptLog struct {
	id       job.RankID
	dir      string
	released time.Time
	bytes    int64
}

// add notes a kept log, as the newest.
func (k *keptLogs) add(id job.RankID, dir string) {
	l := keptLog{id: id, dir: dir, released: rank.ReleasedAt(dir), bytes: keptOverhead}
	if files, err := os.ReadDir(filepath.Join(dir, "box", "log")); err == nil {
		for _, f := range files {
			if info, err := f.Info(); err == nil {
				l.bytes += info.Size()
			}
		}
	}
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

// prune removes kept logs that are too old or too many, oldest first.
func (k *keptLogs) prune(now time.Time) {
	k.mu.Lock()
	var gone []keptLog
	for len(k.list) > 0 {
		l := k.list[0]
		old := now.Sub(l.released) > time.Duration(k.limits.Keep)
		if !old && k.bytes <= int64(k.limits.KeepSize) && len(k.list) <= maxKept {
			break
		}
		gone = append(gone, l)
		k.bytes -= l.bytes
		k.list = k.list[1:]
	}
	k.mu.Unlock()
	for _, l := range gone {
		if err := rank.RemoveDir(l.dir); err != nil {
			k.log.Error("remove kept log", "rank", l.id, "error", err)
		}
	}
}
