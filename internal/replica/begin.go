package replica

import (
	"errors"
	"fmt"
	"os"
	"strings"

	wal "github.com/hashicorp/raft-wal"

	"gbatch/internal/store"
)

// Kept is a member's part of the common log on its disk.
type Kept interface {
	There() (bool, error)  // it is there, as a whole
	Founding() bool        // its making was broken off
	Copy() (uint64, error) // the place in the log of the last copy of a store that lies there; 0: there is none
	Last() (uint64, error) // the place of the last entry
}

// Origin is where the records of a member that starts come from.
type Origin int

// Origins.
const (
	OfStore  Origin = iota // its store, and the log after that
	OfCopy                 // the last copy of a store beside the log, if there is one, and the log after that
	OfNobody               // it is the first member, and makes the log: from the store that it has been alone with, if there is one
)

// Begin says where the records of a member that starts come from, and opens its store if they come from there. A store that is
// damaged, and all of which the log has, makes way: its records come as if it were not there. An error
// is of a store and a log that do not belong together, or of a store that cannot be read otherwise.
func (m *Machine) Begin(k Kept) (Origin, error) {
	var err error
	if m.beside(suspect).There() {
		err = errSuspect
	}
	var origin Origin
	if err == nil {
		origin, err = m.begin(k)
	}
	if err != nil {
		origin, err = m.makeWay(k, err)
	}
	m.begun.Store(err == nil)
	return origin, err
}

// errSuspect is of a store of which a file was found damaged when it was open.
var errSuspect = errors.New("a file of the store is damaged")

// makeWay has a store that is damaged lie beside its place, where it can be looked at, if the log has all of it.
func (m *Machine) makeWay(k Kept, damage error) (Origin, error) {
	if errors.Is(damage, wal.ErrCorrupt) { // it is the log's
		return 0, damage
	}
	if logged, err := k.There(); err != nil || !logged || k.Founding() {
		return 0, errors.Join(damage, err)
	}
	last, err := k.Last()
	if err != nil || !errors.Is(damage, errSuspect) && !store.Damaged(damage, last) {
		return 0, errors.Join(damage, err)
	}
	aside := m.beside(aside)
	err = aside.Remove()
	if err == nil {
		err = m.store.Rename(aside.Dir)
	}
	if err == nil {
		err = m.beside(suspect).Remove()
	}
	if err != nil {
		return 0, errors.Join(damage, err)
	}
	m.log.Error("the store is damaged, and its records are taken from the common log and the other controllers; look at the disk. What was there is kept, and may be removed", "kept", aside.Dir, "error", strings.ReplaceAll(damage.Error(), ": "+again, ""))
	return OfCopy, nil
}

// damaged has this member end, as a file of its store was read and is not as it was written, and take its records anew at its next start.
func (m *Machine) damaged(damage error) {
	if !m.begun.Load() {
		return // the start says it
	}
	if err := m.beside(suspect).Make(); err != nil {
		m.log.Error("that the store is damaged cannot be noted, and it is used on", "error", errors.Join(damage, err))
		return
	}
	m.fail(fmt.Errorf("%w; at the next start its records are taken from the common log and the other controllers: %w", errSuspect, damage))
}

func (m *Machine) begin(k Kept) (Origin, error) {
	there, member, err := store.IsMember(m.store)
	if m.brokenOff() {
		there, member, err = false, false, nil
	}
	if err != nil {
		return 0, err
	}
	switch logged, err := k.There(); {
	case err != nil:
		return 0, err
	case !logged && (!member || k.Founding()):
		return OfNobody, nil
	case !logged:
		return 0, fmt.Errorf("it is gone, and the store is that of one of several controllers: %s", again)
	case !there:
		return OfCopy, nil
	case !member:
		return 0, fmt.Errorf("the store was used by a controller alone since it was one of several: %s", again)
	}
	st, err := store.OpenMember(m.store)
	if err != nil {
		return 0, err
	}
	m.mu.Lock()
	m.st = st
	m.mu.Unlock()
	m.clock.hear(st.Shown()) // the store may be another one's, with no entry after it in the log
	// Where the process ended when it had received another member's store and before that was in the place of its own,
	// what comes after that in the log would be applied to one that lacks what came before.
	at, err := k.Copy()
	if err != nil {
		return 0, err
	}
	if at <= st.Applied() {
		return OfStore, endsBefore(k, at, st.Applied())
	}
	m.log.Info("the store is taken from the last copy of one, which is newer", "through", st.Applied(), "copy", at)
	return OfCopy, nil
}

// endsBefore is an error where a log, and the last copy beside it, do not come to what the store has: its end was lost. New entries would
// have places that the store takes for those of entries which it has.
func endsBefore(k Kept, copied, applied uint64) error {
	last, err := k.Last()
	if err != nil || max(last, copied) >= applied {
		return err
	}
	return fmt.Errorf("it ends with entry %d, and the store has all up to entry %d: the end of the log is lost: %s", max(last, copied), applied, again)
}

// brokenOff says that the process ended in the middle of Restore, so that what is
// there is not to be used.
func (m *Machine) brokenOff() bool { return m.beside(replaced).There() }

// again is what to do with a member whose store and log do not belong together. It must not begin
// anew by itself: there would be two sites.
const again = "remove it from the others by `gadm controllers remove`, empty its directory, and add it again; " +
	"if there are no others, start it once without `replica` in its configuration, and with that directory moved away"

// kept is that of a Replica.
type kept struct{ r *Replica }

func (k kept) There() (bool, error) {
	_, err := os.Stat(k.r.cfg.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (k kept) Founding() bool { return exists(k.r.cfg.Dir + founding) }

func (k kept) Last() (uint64, error) {
	if err := k.r.ownLog(); err != nil {
		return 0, err
	}
	return k.r.wal.LastIndex()
}

func (k kept) Copy() (uint64, error) {
	snaps, err := openCopies(k.r.cfg.Dir, k.r.logger())
	if err != nil {
		return 0, err
	}
	list, err := snaps.List()
	if err != nil || len(list) == 0 {
		return 0, err
	}
	return list[0].Index, nil
}

// passOver removes a log that ends before the last copy of a store, as no entry after that copy could be added to it. It is so where the
// process ended when it had received the copy, and before its log had made way.
func (r *Replica) passOver() error {
	copied, err := kept{r}.Copy()
	if err != nil {
		return err
	}
	first, err := r.wal.FirstIndex()
	if err != nil {
		return err
	}
	last, err := r.wal.LastIndex()
	if err != nil || last == 0 || last >= copied {
		return err
	}
	r.cfg.Log.Warn("the common log ends before the last copy of the store, and goes on after that", "last", last, "copy", copied)
	return r.wal.DeleteRange(first, last)
}
