package store

import (
	"log/slog"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// damage tells of files of the store that are not as they were written. Reading
// such a place is an error each time; the log has it once a file.
type damage struct {
	log *slog.Logger

	mu   sync.Mutex
	said map[string]bool // by the file's path
}

func (d *damage) found(info pebble.DataCorruptionInfo) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.log == nil || d.said[info.Path] {
		return
	}
	if d.said == nil {
		d.said = map[string]bool{}
	}
	d.said[info.Path] = true
	d.log.Error("a file of the store is damaged; stop gctld and restore a backup by `gctld restore`", "file", info.Path, "error", info.Details)
}
