package hooks

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/oci/atomicfile"
)

// stage is how far the site's programs have come for a rank.
type stage string

const (
	inProlog stage = "prolog" // it has begun, and must be run again
	inJob    stage = "job"    // the prolog has passed, or there is none
	inEpilog stage = "epilog" // the rank is over; the epilog has begun, and must be run again
	isOver   stage = "over"   // the epilog has ended
)

// record is what must be known of a rank after a restart of the daemon.
type record struct {
	ID    job.RankID `json:"id"`
	UUID  string     `json:"uuid"`
	Stage stage      `json:"stage"`
	Boot  string     `json:"boot"` // of the machine: what a prolog did does not outlive it
	Facts []string   `json:"facts,omitempty"`
	Exit  *node.Exit `json:"exit,omitempty"` // of a rank that is over
}

func (h *Hooks) file(id job.RankID) string { return filepath.Join(h.Dir, id.String()+".json") }

// put makes a record durable.
func (h *Hooks) put(r record) error {
	b, err := json.Marshal(r)
	if err == nil {
		err = atomicfile.WriteDurable(h.file(r.ID), atomicfile.Sum(b))
	}
	if err != nil {
		return fmt.Errorf("note how far prolog and epilog are: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.records[r.ID] = r
	return nil
}

// load reads the records of an earlier daemon. Of one that cannot be read it is not known
// what a prolog has done to the machine: an operator shall see to that.
func (h *Hooks) load() error {
	if err := os.MkdirAll(h.Dir, 0o700); err != nil {
		return fmt.Errorf("make directory of prologs: %w", err)
	}
	entries, err := os.ReadDir(h.Dir)
	if err != nil {
		return fmt.Errorf("read records of prologs: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(h.Dir, e.Name())
		var r record
		b, err := atomicfile.Read(path)
		if err == nil {
			err = json.Unmarshal(b, &r)
		}
		if err != nil || strings.TrimSuffix(e.Name(), ".json") != r.ID.String() {
			h.Log.Warn("removed what is no record of a prolog", "path", path, "error", err)
			if strings.HasSuffix(e.Name(), ".json") { // else it is what a write left that was broken off
				h.Fault(fmt.Sprintf("the record of the prolog of %s was damaged on the disk: its epilog is not run", strings.TrimSuffix(e.Name(), ".json")))
			}
			_ = os.Remove(path)
			continue
		}
		h.records[r.ID] = r
	}
	return nil
}

// of is the record of a rank of the job with this UUID.
func (h *Hooks) of(id job.RankID, uuid string) (record, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r, ok := h.records[id]
	return r, ok && node.SameJob(r.UUID, uuid)
}
