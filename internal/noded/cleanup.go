package noded

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/internal/noded/storage"
	"gbatch/oci"
)

// clean sees to it that nothing of an ended container still runs before its
// cores and GPUs are called free. Usually the shim has left nothing.
func (a *Agent) clean(r *rank) {
	g, err := a.host.Cgroups.Find(a.host.CgroupPath(r.id))
	if err != nil || !g.Exists() {
		return
	}
	err = errors.Join(g.Kill(cleanTimeout), g.Remove())
	a.health.leftover(r.id, err)
	if err != nil {
		r.log.Error("end what is left of the container", "error", err)
	}
}

const cleanTimeout = 5 * time.Second

// cleanAll removes what an ended rank still has on the host but its log: its
// own writes may be many, so this comes after the end was told. It is tried
// until it works; false means that the daemon went first.
func (a *Agent) cleanAll(r *rank) bool {
	var pause client.Backoff
	for {
		err := errors.Join(oci.Cleanup(r.box()), storage.Unbind(r.dirMounts()), r.detachNetwork())
		if err == nil {
			err = a.data.drop(r.id) // nobody has it mounted any more
		}
		a.health.leftover(r.id, err)
		if err == nil {
			a.images.Drop(r.id)
			return true
		}
		r.log.Error("clean up rank; trying again", "error", err)
		if client.Sleep(a.ctx, pause.Next()) != nil {
			return false
		}
	}
}

// forget ends the agent's knowledge of a rank. Its log stays for a while.
func (a *Agent) forget(r *rank) {
	_, err := os.Stat(filepath.Join(r.dir, "rank.json"))
	switch {
	case err != nil:
		err = removeRankDir(r.dir) // it never ran: there is no log
	default:
		if err = markLetGo(r.dir); err == nil {
			a.keptLog(r.id, r.dir)
		}
	}
	if err != nil {
		r.log.Error("put rank away", "error", err)
	}
	a.mu.Lock()
	delete(a.ranks, r.id)
	a.mu.Unlock()
	r.log.Debug("rank forgotten")
	a.pruneLogs(time.Now())
}

// keptRank is a rank that the controller let go of and whose log is kept.
type keptRank struct {
	id    job.RankID
	dir   string
	ended time.Time
	bytes int64
}

// keptLog notes a kept log.
func (a *Agent) keptLog(id job.RankID, dir string) {
	k := keptRank{id: id, dir: dir, ended: time.Now(), bytes: keptOverhead}
	if st, err := os.Stat(filepath.Join(dir, letGo)); err == nil {
		k.ended = st.ModTime()
	}
	if files, err := os.ReadDir(filepath.Join(dir, "box", "log")); err == nil {
		for _, f := range files {
			if info, err := f.Info(); err == nil {
				k.bytes += info.Size()
			}
		}
	}
	a.keptMu.Lock()
	defer a.keptMu.Unlock()
	a.kept = append(a.kept, k)
	a.keptBytes += k.bytes
}

// unkeep takes a rank out of the kept ones; its directory stays.
func (a *Agent) unkeep(id job.RankID) {
	a.keptMu.Lock()
	defer a.keptMu.Unlock()
	a.kept = slices.DeleteFunc(a.kept, func(k keptRank) bool {
		if k.id == id {
			a.keptBytes -= k.bytes
		}
		return k.id == id
	})
}

const (
	maxKept      = 10_000   // ranks with a directory, however small
	keptOverhead = 64 << 10 // what each takes beside its log, about
)

// pruneLogs removes kept logs that are too old or too many, oldest first.
func (a *Agent) pruneLogs(now time.Time) {
	a.keptMu.Lock()
	var gone []keptRank
	for len(a.kept) > 0 {
		k := a.kept[0]
		old := now.Sub(k.ended) > time.Duration(a.cfg.Logs.Keep)
		if !old && a.keptBytes <= int64(a.cfg.Logs.KeepSize) && len(a.kept) <= maxKept {
			break
		}
		gone = append(gone, k)
		a.keptBytes -= k.bytes
		a.kept = a.kept[1:]
	}
	a.keptMu.Unlock()
	for _, k := range gone {
		if err := removeRankDir(k.dir); err != nil {
			a.log.Error("remove kept log", "rank", k.id, "error", err)
		}
	}
}
