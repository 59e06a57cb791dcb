package noded

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/oci/atomicfile"
)

// rankRecord is what must be known of a rank after a restart of the daemon. It
// is written once, before the container exists.
type rankRecord struct {
	ID     job.RankID   `json:"id"`
	Order  api.RunOrder `json:"order"` // without credentials
	Cores  string       `json:"cores"`
	Digest string       `json:"digest"`
	Boot   string       `json:"boot"` // of the machine: after another one nothing of it lives

	Ports  []job.PortMapping `json:"ports,omitempty"`
	Cached []string          `json:"cached,omitempty"` // keys of inputs that it uses
}

// saveRecord writes the record so that it survives a power cut together with
// its directory's entry among the ranks.
func saveRecord(dir string, rec rankRecord) error {
	rec.Order.Registry = nil
	b, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	if err := atomicfile.WriteDurable(filepath.Join(dir, "rank.json"), b); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(dir))
}

// loadRecord reads what saveRecord wrote. An error wraps fs.ErrNotExist when
// there is none.
func loadRecord(dir string) (rankRecord, error) {
	var rec rankRecord
	b, err := os.ReadFile(filepath.Join(dir, "rank.json"))
	if err != nil {
		return rec, err
	}
	if err := json.Unmarshal(b, &rec); err != nil {
		return rec, fmt.Errorf("read %s: %w", filepath.Join(dir, "rank.json"), err)
	}
	return rec, nil
}

// The marker of a rank that the controller has let go of.
const letGo = "ended"

func markLetGo(dir string) error {
	return os.WriteFile(filepath.Join(dir, letGo), nil, 0o600)
}

func isLetGo(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, letGo))
	return !errors.Is(err, fs.ErrNotExist)
}

// The marker of a rank that was sent its early warning.
const warned = "warned"

func markWarned(dir string) error {
	return os.WriteFile(filepath.Join(dir, warned), nil, 0o600)
}

func isWarned(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, warned))
	return !errors.Is(err, fs.ErrNotExist)
}

func compareRanks(a, b job.RankID) int {
	return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Task, b.Task), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Rank, b.Rank))
}
