package chaos

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"gbatch/internal/job"
	"gbatch/internal/noded/record"
	"gbatch/oci/atomicfile"
	"gbatch/oci/journal"
	"gbatch/oci/result"
)

// nodeDisk is what a node's disk has of its ranks, written and read by the production's code: the record of each, that its
// program may have begun, and how that ended. Every second job runs in a container of its own, which has files; the others
// run in one that they share, and are in its journal. It is called with the machine's mu held.
type nodeDisk struct {
	dir     string
	platter *platter
	full    int // by so many faults
	boot    int
	harmed  map[string]bool // directories below this one in which a bit was turned around
}

// onDisk is what the disk says of a rank.
type onDisk struct {
	recorded error // nil: whose it is can be read
	begun    bool  // its program, or that cannot be known
	ended    error // nil: how is known; wraps fs.ErrNotExist: it did not, as far as is known
	exit     result.Exit
	released bool
}

func (d *nodeDisk) of(id job.RankID) string { return filepath.Join(d.dir, id.String()) }
func (d *nodeDisk) box(id job.RankID) string {
	return filepath.Join(d.of(id), "box")
}

// home is the directory of the shared container in a boot of the machine.
func (d *nodeDisk) home(boot int) string {
	return filepath.Join(d.dir, fmt.Sprintf("boot%d", boot), "box")
}

func shared(id job.RankID) bool { return id.Job%2 == 0 }

// begin makes the shared container of a new boot.
func (d *nodeDisk) begin(boot int) error {
	d.boot = boot
	home := d.home(boot)
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	if err := record.Save(filepath.Dir(home), record.Record{}); err != nil {
		return err
	}
	f, err := journal.Create(home)
	if err != nil {
		return err
	}
	return f.Close() // no shim has to be told from a dead one
}

// note writes to the journal of a boot.
func (d *nodeDisk) note(boot int, line func(*journal.Journal) error) error {
	j, err := journal.Open(d.home(boot))
	if err != nil {
		return err
	}
	return errors.Join(line(j), j.Close())
}

// lacks says of a rank what the disk must have of it, whatever befell the node but a bit that was turned around, and has
// not; empty: it has all. What a shared container's journal has of one is durable when its program begins.
func (d *nodeDisk) lacks(r *rank, is *onDisk) string {
	alone := !shared(r.id)
	at := d.of(r.id)
	if !alone {
		at = filepath.Dir(d.home(r.boot))
	}
	switch {
	case r.nowhere || d.harmed[at]:
	case is == nil && (alone || r.begun):
		return "record"
	case is == nil:
	case alone && is.recorded != nil:
		return fmt.Sprintf("record (%v)", is.recorded)
	case r.begun && !is.begun:
		return "begin"
	case alone && r.exit != nil && !r.lost && is.ended != nil:
		return fmt.Sprintf("end (%v)", is.ended)
	}
	return ""
}

// accept writes a rank down. On a full disk the error wraps syscall.ENOSPC, as those of begun and ended.
func (d *nodeDisk) accept(r *rank) error {
	if d.full > 0 {
		return fmt.Errorf("write the record of %s: %w", r.id, syscall.ENOSPC)
	}
	rec := record.Record{ID: r.id, Order: r.order, Boot: fmt.Sprint(d.boot)}
	r.boot = d.boot
	if shared(r.id) {
		return record.SaveGuest(d.home(d.boot), rec)
	}
	return errors.Join(os.MkdirAll(d.box(r.id), 0o700), record.Save(d.of(r.id), rec))
}

// begun writes down that its program may have begun. A guest has the room for that since it was accepted.
func (d *nodeDisk) begun(r *rank) error {
	if shared(r.id) {
		return d.note(r.boot, func(j *journal.Journal) error { return j.Begun(r.id.String()) })
	}
	if d.full > 0 {
		return fmt.Errorf("mark that %s begins: %w", r.id, syscall.ENOSPC)
	}
	return result.WriteBegun(d.box(r.id))
}

// ended writes down how that ended. The mark of what has begun has the room for it.
func (d *nodeDisk) ended(r *rank, e result.Exit) error {
	if shared(r.id) { // durable when the next one begins
		return d.note(r.boot, func(j *journal.Journal) error { return j.Ended(r.id.String(), e) })
	}
	if d.full > 0 && !r.begun {
		return fmt.Errorf("write how %s ended: %w", r.id, syscall.ENOSPC)
	}
	if err := os.MkdirAll(d.box(r.id), 0o700); err != nil {
		return err
	}
	return result.Write(d.box(r.id), e)
}

// release writes down that nobody asks for it any more.
func (d *nodeDisk) release(r *rank) error {
	if shared(r.id) {
		return record.GuestOver(d.home(r.boot), r.id)
	}
	return record.MarkReleased(d.of(r.id))
}

// drop removes what there is of a rank that did not begin, or is another job's now.
func (d *nodeDisk) drop(r *rank) error {
	if shared(r.id) {
		return record.GuestOver(d.home(r.boot), r.id)
	}
	return os.RemoveAll(d.of(r.id))
}

// read is what the disk says of a rank; nil: nothing.
func (d *nodeDisk) read(r *rank) *onDisk {
	if shared(r.id) {
		return d.guest(r)
	}
	_, err := record.Load(d.of(r.id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	k := &onDisk{recorded: err, released: record.IsReleased(d.of(r.id))}
	k.exit, k.ended = result.Settle(d.box(r.id))
	k.begun = k.ended == nil || errors.Is(k.ended, atomicfile.ErrDamaged) || record.IsMarked(d.box(r.id), result.FileBegun)
	return k
}

func (d *nodeDisk) guest(r *rank) *onDisk {
	g, err := journal.Find(d.home(r.boot), r.id.String())
	if g == nil && !errors.Is(err, atomicfile.ErrDamaged) {
		return nil
	}
	k := &onDisk{ended: fs.ErrNotExist, recorded: err, begun: err != nil} // of a damaged journal that is not known
	if g == nil {
		return k
	}
	if g.Record != nil && !g.Over {
		_, k.recorded = record.OfGuest(d.home(r.boot), g)
	}
	if g.Exit != nil {
		k.exit, k.ended = *g.Exit, nil
	}
	k.begun, k.released = k.begun || !g.Begun.IsZero() || g.Exit != nil, g.Over
	return k
}

// shorten shortens the journals of containers that are gone.
func (d *nodeDisk) shorten() error {
	var all []error
	for boot := 1; boot < d.boot; boot++ {
		if err := record.Shorten(d.home(boot)); !errors.Is(err, atomicfile.ErrDamaged) {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// cut is a power cut. It says whether the journal has lost anything.
func (d *nodeDisk) cut(r *rand.Rand) (torn bool, err error) {
	changed, err := d.platter.cut(r)
	return slices.Contains(changed, filepath.Join(d.home(d.boot), journal.File)), err
}

// flip turns a bit of a file around, half of the time of the journal, and says of which.
func (d *nodeDisk) flip(r *rand.Rand) (string, error) {
	path := filepath.Join(d.home(d.boot), journal.File)
	if files, err := filepath.Glob(filepath.Join(d.dir, "*_*", "*")); err == nil && len(files) > 0 && r.IntN(2) == 0 {
		path = files[r.IntN(len(files))]
		if st, err := os.Stat(path); err == nil && st.IsDir() {
			path = filepath.Join(path, []string{result.FileBegun, result.FileExit}[r.IntN(2)])
		}
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(text) == 0 {
		return "nothing", nil
	}
	if err != nil {
		return "", err
	}
	text[r.IntN(len(text))] ^= 1 << r.IntN(8)
	of, _, _ := strings.Cut(strings.TrimPrefix(path, d.dir+"/"), "/")
	d.harmed[filepath.Join(d.dir, of)] = true
	return filepath.Base(path), os.WriteFile(path, text, 0o600)
}
