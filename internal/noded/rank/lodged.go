package rank

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"gbatch/internal/noded/record"
	"gbatch/oci"
	"gbatch/oci/journal"
	"gbatch/oci/logs"
	"gbatch/oci/result"
)

// loadRecord reads a rank's record.
func (o *order) loadRecord() (record.Record, error) {
	if !o.guest {
		return record.Load(o.dir)
	}
	return record.LoadGuest(o.lodging().Home, o.id)
}

// saveRecord writes a rank's record.
func (o *order) saveRecord(rec record.Record) error {
	if o.guest {
		return record.SaveGuest(o.lodging().Home, rec)
	}
	return record.Save(o.dir, rec)
}

// forgetGuest notes that nobody asks for the guest any more.
func (r *recipe) forgetGuest() {
	if err := record.GuestOver(r.order.lodging().Home, r.order.id); err != nil {
		r.state.log.Warn("a restart of the daemon would tell of the rank's end again", "error", err)
	}
}

// released notes that the controller has released a rank: of a guest that left no directory only its end
// is known from here on, and the journal of an owner is as short as may be.
func released(r *Rank, kept bool) {
	if !r.order.guest {
		if err := record.Shorten(r.order.containerDir()); err != nil {
			r.log.Warn("the journal of a container is longer than it need be", "error", err)
		}
		return
	}
	ended := r.order.exited
	if r.container != nil {
		ended = r.container.Exit
	}
	if exit, err := ended(); err == nil && !kept {
		r.node.Past.Add(r.order.id, r.order.UUID, exit)
	}
	r.forgetGuest()
}

// exited is how the rank's program ended, as it is recorded.
func (o *order) exited() (result.Exit, error) {
	if !o.guest {
		return result.Read(o.containerDir())
	}
	at := o.lodging()
	g, err := journal.Find(at.Home, at.Name)
	if g != nil && g.Exit != nil {
		return *g.Exit, nil
	}
	return result.Exit{}, errors.Join(err, fmt.Errorf("how %s ended: %w", at.Name, fs.ErrNotExist))
}

// adopt finds out what became of the rank's program.
func (o *order) adopt() (oci.State, *oci.Container, error) {
	if o.guest {
		return oci.AdoptGuest(o.lodging())
	}
	return oci.AdoptIn(o.containerDir(), o.lodging().Home)
}

// leaveFiles puts what the journal says of a guest that has a directory, for its log or other files, there:
// from here on that is kept as other ranks' are. It is false where there is none.
func (o *order) leaveFiles() (kept bool, err error) {
	if _, err := os.Stat(o.dir); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	exit, err := o.exited()
	if errors.Is(err, fs.ErrNotExist) {
		return false, RemoveDir(o.dir) // it never ran
	}
	if err != nil {
		return false, err
	}
	rec, err := o.loadRecord()
	if err == nil {
		err = os.MkdirAll(o.containerDir(), 0o711)
	}
	if err == nil {
		err = errors.Join(result.Copy(o.containerDir(), exit), record.Save(o.dir, rec))
	}
	return err == nil, err
}

// OpenLog opens a rank's log.
func OpenLog(r *Rank) (*logs.Log, error) {
	r.state.mu.Lock()
	c := r.state.container
	r.state.mu.Unlock()
	if c != nil {
		return c.Log()
	}
	if r.order.guest {
		return oci.OpenGuestLog(r.order.containerDir(), r.state.ended), nil
	}
	return oci.OpenLog(r.order.containerDir())
}
