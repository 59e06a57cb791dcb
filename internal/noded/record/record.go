// Package record is what is durable of a rank beside its container: a record, which is there before
// anything of it can run, and marks, in its directory or in the journal of the container that it is a guest in.
package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/oci/atomicfile"
	"gbatch/oci/result"
)

const (
	fileRecord   = "rank.json"
	fileReleased = "ended" // marks a rank that the controller has released
)

// Record is what must be known of a rank after a restart of the daemon. It
// is written once, before the container exists.
type Record struct {
	ID     job.RankID   `json:"id"`
	Order  api.RunOrder `json:"order"` // without credentials
	Cores  string       `json:"cores"`
	Digest string       `json:"digest"`
	Before []string     `json:"before,omitempty"` // digests of images of the job's further programs
	Boot   string       `json:"boot"`             // of the machine: after another one nothing of it lives
	Begun  int64        `json:"begun,omitempty"`  // when the first of several programs began, in milliseconds since that boot; 0: nobody has noted it

	Home *job.RankID `json:"home,omitempty"` // whose container it runs in; absent: its own

	Link   string            `json:"link,omitempty"` // the node's interface for its network
	Ports  []job.PortMapping `json:"ports,omitempty"`
	Cached []string          `json:"cached,omitempty"` // keys of inputs that it uses
}

// Save writes the record so that it survives a power cut together with
// its directory's entry among the ranks.
func Save(dir string, rec Record) error {
	rec.Order.Registry, rec.Order.Secret, rec.Order.Document = nil, "", ""
	b, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	if err := atomicfile.WriteDurable(filepath.Join(dir, fileRecord), atomicfile.Sum(b)); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(dir))
}

// Load reads what Save wrote. An error wraps fs.ErrNotExist when
// there is none.
func Load(dir string) (Record, error) {
	var rec Record
	b, err := atomicfile.Read(filepath.Join(dir, fileRecord))
	if err != nil {
		return rec, err
	}
	if err := json.Unmarshal(b, &rec); err != nil {
		return rec, fmt.Errorf("read %s: %w", filepath.Join(dir, fileRecord), err)
	}
	return rec, nil
}

// UserOf is whose rank a directory was; empty: that cannot be read.
func UserOf(dir string) string {
	rec, err := Load(dir)
	if err != nil {
		return ""
	}
	return rec.Order.User
}

// Mark makes an empty file.
func Mark(dir, file string) error { return os.WriteFile(filepath.Join(dir, file), nil, 0o600) }

// IsMarked says whether there is a file of this name.
func IsMarked(dir, file string) bool {
	_, err := os.Stat(filepath.Join(dir, file))
	return !errors.Is(err, fs.ErrNotExist)
}

// MarkReleased marks a rank that the controller has released just now.
func MarkReleased(dir string) error {
	now := time.Now()
	if err := os.Chtimes(filepath.Join(dir, fileRecord), now, now); err != nil {
		return err
	}
	return markRecord(dir, fileReleased)
}

// markRecord makes a mark another name of the record, which costs no file.
func markRecord(dir, file string) error {
	if err := os.Link(filepath.Join(dir, fileRecord), filepath.Join(dir, file)); err != nil && !errors.Is(err, fs.ErrExist) {
		return Mark(dir, file) // on a file system without links
	}
	return nil
}

// IsReleased says whether a directory is that of a rank that the controller has
// released, and so only kept for its log.
func IsReleased(dir string) bool { return IsMarked(dir, fileReleased) }

// fileKept marks a rank whose log is kept elsewhere too.
const fileKept = "kept"

// MarkKept notes that all of a rank's log is kept elsewhere, or that nobody takes it.
func MarkKept(dir string) error { return markRecord(dir, fileKept) }

// OwesLog says whether the log in a directory is to be kept elsewhere and is not
// yet, and the UUID of its job. An empty one was told with the rank's end.
func OwesLog(dir string) (uuid string, owes bool) {
	if IsMarked(dir, fileKept) {
		return "", false
	}
	if e, err := result.Read(filepath.Join(dir, "box")); err == nil && e.Silent() {
		return "", false
	}
	rec, err := Load(dir)
	if err != nil || rec.Order.Logs == nil {
		return "", false
	}
	return rec.Order.UUID, rec.Order.Logs.Controller
}

// asideMark stands in the name of a directory that was put aside, between the
// rank's id and the UUID of its job.
const asideMark = "~"

// ParseDir is the rank whose directory has this name.
func ParseDir(name string) (job.RankID, error) {
	id, _, _ := strings.Cut(name, asideMark)
	return job.ParseRankID(id)
}

// Aside is where the log of a job with this UUID is kept when another job's rank has its directory.
func Aside(dir, uuid string) string { return dir + asideMark + uuid }

// Has says whether a directory has a record.
func Has(dir string) bool { return IsMarked(dir, fileRecord) }

// FindContainer is where the container of a rank of the job with this UUID is or was,
// given the directory of ranks of that number; empty: there is none. Of a rank
// whose record cannot be read it is not known whose it was.
func FindContainer(dir, uuid string) string {
	for _, at := range []string{dir, dir + asideMark + uuid} {
		rec, err := Load(at)
		if err == nil && node.SameJob(rec.Order.UUID, uuid) {
			return filepath.Join(at, "box")
		}
	}
	return ""
}

// ReleasedAt is when that was.
func ReleasedAt(dir string) time.Time {
	st, err := os.Stat(filepath.Join(dir, fileReleased))
	if err != nil {
		return time.Now()
	}
	return st.ModTime()
}
