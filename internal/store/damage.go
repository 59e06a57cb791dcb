package store

import (
	"fmt"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// damage tells of files of the store that are not as they were written. Reading
// such a place is an error each time; the log has it once a file.
type damage struct {
	cfg Config

	mu   sync.Mutex
	said map[string]bool // by the file's path
}

// damagePause is how long whoever meets damage waits before anything else. Pebble begins a compaction that met some
// again at once, and would keep a processor busy with that for as long as the program runs. All wait alike, whoever is first.
const damagePause = 250 * time.Millisecond

func (d *damage) found(info pebble.DataCorruptionInfo) {
	time.Sleep(damagePause)
	if !d.first(info.Path) {
		return
	}
	if d.cfg.Log != nil {
		d.cfg.Log.Error("a file of the store is damaged: "+d.cfg.mend(), "file", info.Path, "error", info.Details)
	}
	if d.cfg.Damaged != nil {
		d.cfg.Damaged(fmt.Errorf("%s: %w", info.Path, info.Details))
	}
}

// first says whether nothing was said of a file yet.
func (d *damage) first(path string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.said[path] {
		return false
	}
	if d.said == nil {
		d.said = map[string]bool{}
	}
	d.said[path] = true
	return true
}
