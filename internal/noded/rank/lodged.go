package rank

import (
	"errors"
	"io/fs"
	"os"

	"gbatch/internal/noded/record"
	"gbatch/oci"
	"gbatch/oci/logs"
	"gbatch/oci/result"
)

// recorded is a rank's record as it was written last.
func (o *order) recorded() (record.Record, error) {
	if o.rec == nil {
		return record.Record{}, errors.New("the rank's record is gone or damaged")
	}
	return *o.rec, nil
}

// saveRecord writes a rank's record.
func (o *order) saveRecord(rec record.Record) error {
	save, at := record.Save, o.dir
	if o.guest {
		save, at = record.SaveGuest, o.lodging().Home
	}
	if err := save(at, rec); err != nil {
		return err
	}
	o.rec = &rec
	return nil
}

// forgetGuest notes that nobody asks for the rank any more, if it is a guest.
func (r *recipe) forgetGuest() {
	if !r.order.guest {
		return
	}
	if err := record.GuestOver(r.order.lodging().Home, r.order.id); err != nil {
		r.state.log.Warn("a restart of the daemon would tell of the rank's end again", "error", err)
	}
}

// released notes that the controller has released a rank: of a guest that left no directory only its end
// is known from here on, and the journal of an owner is as short as may be.
func released(r *Rank, kept bool, exit *result.Exit) {
	if !r.order.guest {
		if err := record.Shorten(r.order.containerDir()); err != nil {
			r.log.Warn("the journal of a container is longer than it need be", "error", err)
		}
		return
	}
	if exit != nil && !kept {
		r.node.Past.Add(r.order.id, r.order.UUID, *exit)
	}
	r.forgetGuest()
}

// guestEnd is how the program of a guest ended, which is over; nil: it never began. The journal, which
// has all guests of a container, is read only if the shim did not tell.
func guestEnd(r *Rank) (*result.Exit, error) {
	ended := r.order.exited
	if r.container != nil {
		ended = r.container.Exit
	}
	exit, err := ended()
	if err == nil {
		return &exit, nil
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, oci.ErrNeverStarted) {
		err = nil
	}
	return nil, err
}

// exited is how the rank's program ended, as it is recorded.
func (o *order) exited() (result.Exit, error) {
	if !o.guest {
		return result.Read(o.containerDir())
	}
	return record.GuestExit(o.lodging().Home, o.id)
}

// adopt finds out what became of the rank's program.
func (o *order) adopt() (oci.State, *oci.Container, error) {
	if o.guest {
		return oci.AdoptGuest(o.lodging())
	}
	return oci.AdoptIn(o.containerDir(), o.lodging().Home)
}

// leaveFiles puts what is known of a guest that has a directory, for its log or other files, there:
// from here on that is kept as other ranks' are. It is false where there is none.
func (o *order) leaveFiles(exit *result.Exit) (kept bool, err error) {
	if _, err := os.Stat(o.dir); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if exit == nil {
		return false, RemoveDir(o.dir) // it never ran
	}
	rec, err := o.recorded()
	if err == nil {
		err = record.Leave(o.dir, rec, *exit)
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
