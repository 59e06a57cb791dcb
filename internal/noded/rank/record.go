package rank

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

// The files of a rank's directory, beside the container's.
const (
	fileRecord    = "rank.json"
	fileStop      = "stop.json"
	fileOutcome   = "verdict.json" // see outcome
	fileReleased  = "ended"        // marks a rank that the controller has released
	FileAlone     = "alone"        // marks one that runs on without contact, for the guard of leases
	fileWarned    = "warned"       // marks a rank that was sent its early warning
	fileSignalled = "signalled"    // has the number of the last signal that was sent
	fileMeter     = "gpus.json"
)

// rankRecord is what must be known of a rank after a restart of the daemon. It
// is written once, before the container exists.
type rankRecord struct {
	ID     job.RankID   `json:"id"`
	Order  api.RunOrder `json:"order"` // without credentials
	Cores  string       `json:"cores"`
	Digest string       `json:"digest"`
	Before []string     `json:"before,omitempty"` // digests of images of the job's further programs
	Boot   string       `json:"boot"`             // of the machine: after another one nothing of it lives

	Home *job.RankID `json:"home,omitempty"` // whose container it runs in; absent: its own

	Link   string            `json:"link,omitempty"` // the node's interface for its network
	Ports  []job.PortMapping `json:"ports,omitempty"`
	Cached []string          `json:"cached,omitempty"` // keys of inputs that it uses
}

// saveRecord writes the record so that it survives a power cut together with
// its directory's entry among the ranks.
func saveRecord(dir string, rec rankRecord) error {
	rec.Order.Registry, rec.Order.Secret = nil, ""
	b, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	if err := atomicfile.WriteDurable(filepath.Join(dir, fileRecord), atomicfile.Sum(b)); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(dir))
}

// loadRecord reads what saveRecord wrote. An error wraps fs.ErrNotExist when
// there is none.
func loadRecord(dir string) (rankRecord, error) {
	var rec rankRecord
	b, err := atomicfile.Read(filepath.Join(dir, fileRecord))
	if err != nil {
		return rec, err
	}
	if err := json.Unmarshal(b, &rec); err != nil {
		return rec, fmt.Errorf("read %s: %w", filepath.Join(dir, fileRecord), err)
	}
	return rec, nil
}

// record notes durably, before anything of the user's can run, what the rank
// is and which cores it has.
func (r *Rank) record(s *state) error {
	rec := rankRecord{ID: r.order.id, Order: r.order.RunOrder, Cores: r.cores.CPUs.String(), Digest: r.image.Digest, Before: r.digests(), Boot: r.node.Boot, Link: r.net.Link(), Ports: s.now().Ports, Cached: r.inputs.Cached}
	if r.order.at != r.order.id {
		rec.Home = &r.order.at
	}
	if err := saveRecord(r.order.dir, rec); err != nil {
		return fmt.Errorf("record rank: %w", err)
	}
	if r.order.Alone {
		if err := mark(r.order.dir, FileAlone); err != nil {
			return fmt.Errorf("record rank: %w", err)
		}
	}
	s.setPhase(node.PhaseStarting)
	return nil
}

// outcome is how a rank ended when all was done that comes after its program.
// It is written before that is told, and is the same for ever. (Its file is
// named by an older word.)
type outcome struct {
	Code    int        `json:"code"`
	Reason  job.Reason `json:"reason"`
	Message string     `json:"message"`
}

func saveOutcome(dir string, out *node.Exit) error {
	b, err := json.Marshal(outcome{out.Code, out.Reason, out.Message})
	if err == nil {
		err = atomicfile.WriteDurable(filepath.Join(dir, fileOutcome), atomicfile.Sum(b))
	}
	if err != nil {
		return fmt.Errorf("note how the rank ended: %w", err)
	}
	return nil
}

// loadOutcome puts what saveOutcome wrote over a program's exit, and says
// whether there was any.
func loadOutcome(dir string, out *node.Exit) bool {
	b, err := atomicfile.Read(filepath.Join(dir, fileOutcome))
	var o outcome
	if err != nil || json.Unmarshal(b, &o) != nil {
		return false // the outputs are saved again, which changes nothing
	}
	out.Code, out.Reason, out.Message = o.Code, o.Reason, o.Message
	return true
}

// UserOf is whose rank a directory was; empty: that cannot be read.
func UserOf(dir string) string {
	rec, err := loadRecord(dir)
	if err != nil {
		return ""
	}
	return rec.Order.User
}

func mark(dir, file string) error { return os.WriteFile(filepath.Join(dir, file), nil, 0o600) }

func isMarked(dir, file string) bool {
	_, err := os.Stat(filepath.Join(dir, file))
	return !errors.Is(err, fs.ErrNotExist)
}

// markReleased marks a rank that the controller has released just now.
func markReleased(dir string) error {
	now := time.Now()
	if err := os.Chtimes(filepath.Join(dir, fileRecord), now, now); err != nil {
		return err
	}
	return markRecord(dir, fileReleased)
}

// markRecord makes a mark another name of the record, which costs no file.
func markRecord(dir, file string) error {
	if err := os.Link(filepath.Join(dir, fileRecord), filepath.Join(dir, file)); err != nil && !errors.Is(err, fs.ErrExist) {
		return mark(dir, file) // on a file system without links
	}
	return nil
}

// IsReleased says whether a directory is that of a rank that the controller has
// released, and so only kept for its log.
func IsReleased(dir string) bool { return isMarked(dir, fileReleased) }

// fileKept marks a rank whose log is kept elsewhere too.
const fileKept = "kept"

// MarkKept notes that all of a rank's log is kept elsewhere, or that nobody takes it.
func MarkKept(dir string) error { return markRecord(dir, fileKept) }

// OwesLog says whether the log in a directory is to be kept elsewhere and is not
// yet, and the UUID of its job. An empty one was told with the rank's end.
func OwesLog(dir string) (uuid string, owes bool) {
	if isMarked(dir, fileKept) {
		return "", false
	}
	if e, err := result.Read(filepath.Join(dir, "box")); err == nil && e.Silent() {
		return "", false
	}
	rec, err := loadRecord(dir)
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

// PutAside makes room for a rank of the job with this UUID where the log of
// another job's is kept, and says where that is now.
func PutAside(dir, uuid string) (string, error) {
	rec, err := loadRecord(dir)
	if err == nil && node.SameJob(rec.Order.UUID, uuid) {
		return dir, nil
	}
	aside := dir + asideMark + rec.Order.UUID
	return aside, errors.Join(RemoveDir(aside), os.Rename(dir, aside))
}

// FindContainer is where the container of a rank of the job with this UUID is or was,
// given the directory of ranks of that number; empty: there is none. Of a rank
// whose record cannot be read it is not known whose it was.
func FindContainer(dir, uuid string) string {
	for _, at := range []string{dir, dir + asideMark + uuid} {
		rec, err := loadRecord(at)
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
