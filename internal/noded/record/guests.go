package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/oci/atomicfile"
	"gbatch/oci/journal"
	"gbatch/oci/result"
)

// SaveGuest notes a guest's record in the journal of a container's directory. What its order says as that of
// the container's owner does is not said again.
func SaveGuest(home string, rec Record) error {
	rec.Order.Registry, rec.Order.Secret, rec.Order.Spec, rec.Order.Document = nil, "", job.Spec{}, ""
	return write(home, func(j *journal.Journal) error { return j.Record(rec.ID.String(), rec) })
}

// GuestExit is how a guest's program ended, by the journal. The error wraps fs.ErrNotExist where that is not known.
func GuestExit(home string, id job.RankID) (result.Exit, error) {
	g, err := journal.Find(home, id.String())
	if g != nil && g.Exit != nil {
		return *g.Exit, nil
	}
	return result.Exit{}, errors.Join(err, fmt.Errorf("how %s ended: %w", id, fs.ErrNotExist))
}

// Leave puts a guest's record and how it ended into a directory of its own, as those of other ranks.
func Leave(dir string, rec Record, exit result.Exit) error {
	box := filepath.Join(dir, "box")
	if err := os.MkdirAll(box, 0o711); err != nil {
		return err
	}
	return errors.Join(result.Copy(box, exit), Save(dir, rec))
}

// GuestOver notes that nobody asks for a guest any more. Without the journal nobody does.
func GuestOver(home string, id job.RankID) error {
	err := write(home, func(j *journal.Journal) error { return j.Over(id.String()) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func write(home string, line func(*journal.Journal) error) error {
	j, err := journal.Open(home)
	if err != nil {
		return err
	}
	return errors.Join(line(j), j.Close())
}

// OfGuest is the record that a journal has of a guest, with what its owner's record says. Home is the directory of
// the owner's container.
func OfGuest(home string, g *journal.Guest) (rec Record, err error) {
	if g.Record == nil {
		return rec, fmt.Errorf("the record of guest %s: %w", g.Name, atomicfile.ErrDamaged)
	}
	if err := json.Unmarshal(g.Record, &rec); err != nil {
		return rec, err
	}
	owner, err := Load(filepath.Dir(home))
	rec.Order.Spec = owner.Order.Spec
	return rec, err
}

// shortRecord is what is known of a guest for as long as its container's owner keeps its log.
type shortRecord struct {
	Order struct {
		UUID string `json:"uuid"`
	} `json:"order"`
}

func shortOf(record json.RawMessage) (s shortRecord) {
	_ = json.Unmarshal(record, &s) // what cannot be read says nothing
	return s
}

// Shorten leaves in the journal of a container that has ended what is to be known for longer.
func Shorten(home string) error {
	err := journal.Shorten(home, func(record json.RawMessage) any { return shortOf(record) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Past are the guests that the controller has released, and which left no directory: one that it orders
// again must not run a second time. The last are known.
type Past struct {
	mu   sync.Mutex
	ends map[job.RankID]past
	list []job.RankID
}

type past struct {
	uuid string
	exit result.Exit
}

// Add notes how one ended.
func (p *Past) Add(id job.RankID, uuid string, exit result.Exit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ends == nil {
		p.ends = map[job.RankID]past{}
	}
	if _, known := p.ends[id]; !known {
		p.list = append(p.list, id)
	}
	p.ends[id] = past{uuid, exit}
	if len(p.list) > maxPast {
		delete(p.ends, p.list[0])
		p.list = p.list[1:]
	}
}

// maxPast is as many as ranks that left a directory are known.
const maxPast = 10_000

// Find is how one ended; false: that is not known.
func (p *Past) Find(id job.RankID, uuid string) (result.Exit, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, known := p.ends[id]
	return e.exit, known && node.SameJob(e.uuid, uuid)
}

// AddGuest notes one by what a journal says of it.
func (p *Past) AddGuest(id job.RankID, g *journal.Guest) {
	if g.Exit != nil {
		p.Add(id, shortOf(g.Record).Order.UUID, *g.Exit)
	}
}
