package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"syscall"

	"gbatch/internal/store/floor"
)

// MarkSuffix follows the name of a store's directory in that of the file beside it
// that keeps how far the store must have come.
const MarkSuffix = ".mark"

func (c Config) floorFile() string { return c.Dir + MarkSuffix }

// A lossError says that a store is not what was committed to it.
type lossError struct {
	What  string // is wrong, as a sentence
	Token string // by which an administrator names this very loss
	mend  string // Config.Mend
	upTo  uint64 // of a member: a common log that has come so far has all of it; 0: no log is known to
}

func (e *lossError) Error() string {
	if e.mend != "" {
		return e.What + ": " + e.mend
	}
	return fmt.Sprintf("%s. Put the missing files back if there are any, or restore a backup by `gctld restore`; to go on with what is there and lose the rest for good: `gctld accept-loss %s`",
		e.What, e.Token)
}

// inspect looks at a store without changing it, so that what is missing can still
// be put back. It gives the mark that the store goes on from; fresh: there is none
// yet, and nothing was ever committed.
func inspect(cfg Config) (m floor.Mark, fresh bool, err error) {
	last, found, unread := floor.Read(cfg.FS, cfg.floorFile())
	files, err := cfg.FS.List(cfg.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return m, false, err
	}
	unmade := found && last.Count == 0 // its making was broken off
	switch {
	case len(files) == 0 && unmade:
		return last, true, nil
	case len(files) == 0 && !found && unread == nil:
		return newMark(), true, nil
	case len(files) == 0:
		return m, false, &lossError{What: fmt.Sprintf("it is gone: %d commits were made to it", last.Count), Token: token(last, floor.Mark{}), mend: cfg.Mend}
	}
	have, format, gap, err := readMark(cfg)
	switch {
	case errors.Is(err, ErrInUse):
		return m, false, err
	case err != nil && unmade:
		return last, true, nil
	case err != nil:
		return m, false, cfg.damaged(err)
	case format > formatNumber:
		return m, false, fmt.Errorf("its format is %d and this program knows up to %d: use the newer gctld, or restore a backup", format, formatNumber)
	case format < 3 && have == floor.Mark{} && !found && unread == nil:
		return newMark(), false, nil // of a time before commits were counted
	case unmade && have == floor.Mark{}:
		return last, false, nil
	}
	what := compare(have, last, found)
	if what == "" {
		what, last = goneBack(cfg, have, last)
	}
	if what == "" && gap > 0 {
		what = fmt.Sprintf("%d of the %d commits that were made to it are missing, though there are later ones", gap, have.Count)
	}
	if unread != nil {
		what = fmt.Sprintf("the file that tells how far it must have come cannot be used (%v); it has %d commits, and whether these are all is not known", unread, have.Count)
	}
	if what != "" {
		upTo := cfg.inLog(have, last, found)
		have.Count -= gap
		return m, false, &lossError{what, token(last, have), cfg.Mend, upTo}
	}
	return have, false, nil
}

// inLog is how far a common log has come that has all of a member's store, of which some commits are missing or the mark cannot be
// read; 0: that is not known. Each commit was an entry.
func (c Config) inLog(have, last floor.Mark, found bool) uint64 {
	at, member, err := c.applied()
	switch {
	case err != nil || !member:
	case !found || compare(have, last, true) == "": // the mark says nothing of the log; or what is missing came before what is there
		return at
	case have.ID == last.ID && have.Count < last.Count:
		return at + last.Count - have.Count
	}
	return 0
}

// errDamaged is of a database that does not open.
var errDamaged = errors.New("it is damaged, or its disk cannot be read")

// damaged says what to do about a database that does not open, but where another program has it open.
func (c Config) damaged(err error) error {
	if errors.Is(err, ErrInUse) {
		return err
	}
	return fmt.Errorf("%w: %w: %s", errDamaged, err, c.mend())
}

func (c Config) mend() string {
	return cmp.Or(c.Mend, "stop gctld, and restore a backup by `gctld restore`")
}

// Damaged says whether an error is of a member's store that is not what was written, and all of which is known to have been in a
// common log that has come as far as last. It is not where the disk, or another program, keeps it from being read.
func Damaged(err error, last uint64) bool {
	if loss := (*lossError)(nil); errors.As(err, &loss) {
		return loss.upTo > 0 && loss.upTo <= last
	}
	var kept syscall.Errno
	return errors.Is(err, errDamaged) && (!errors.As(err, &kept) || kept == syscall.ENOENT)
}

// prepare makes way for a store that is made anew, and keeps first that nothing was committed
// to it: when its making is broken off, nothing is missing. What is left of such a one is
// moved away.
func prepare(cfg Config, m floor.Mark) error {
	f, err := floor.Open(cfg.FS, cfg.floorFile(), m)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return err
	}
	files, err := cfg.FS.List(cfg.Dir)
	if len(files) == 0 {
		return nil // none, or the error comes again
	}
	aside := cfg.Dir + ".unfinished"
	if cfg.Log != nil {
		cfg.Log.Warn("a store is made anew: its making was broken off before anything was committed", "moved_to", aside)
	}
	return errors.Join(err, cfg.FS.RemoveAll(aside), cfg.FS.Rename(cfg.Dir, aside))
}

// readMark reads the mark in a store, zero if it has none, its format, and how many
// commits before the mark are missing.
func readMark(cfg Config) (m floor.Mark, format, gap uint64, err error) {
	defer recovered(&err)
	o := options(cfg)
	o.ReadOnly = true
	db, err := openDB(cfg.Dir, o)
	if err != nil {
		return m, 0, 0, err
	}
	m, format, gap, err = (&Store{db: db}).progress()
	return m, format, gap, errors.Join(err, db.Close())
}

// progress is the mark in a store, zero if it has none, its format, and how many commits before
// the mark are missing.
func (s *Store) progress() (m floor.Mark, format, gap uint64, err error) {
	text, marked, err := s.get(keyMark)
	if err == nil && marked {
		m, err = floor.Decode(text)
	}
	if err == nil {
		format, err = s.meta(keyFormat)
	}
	if err == nil && marked {
		gap, err = s.gap(m, format)
	}
	return m, format, gap, err
}

// recovered makes an error of a panic, by which pebble gives up on what it cannot
// read.
func recovered(err *error) {
	if damage := recover(); damage != nil {
		*err = fmt.Errorf("the database gives up: %v", damage)
	}
}

// compare says what is wrong with a store that has come to have, of which the
// floor says want; "" if nothing is.
func compare(have, want floor.Mark, found bool) string {
	switch {
	case !found:
		return fmt.Sprintf("the file that tells how far it must have come is gone; it has %d commits, and whether these are all is not known", have.Count)
	case have == floor.Mark{}:
		return fmt.Sprintf("it has no count of its commits, of which %d were made: it is an older copy or not the same store", want.Count)
	case have.ID != want.ID:
		return fmt.Sprintf("it is another store than the one to which %d commits were made here; this one has %d", want.Count, have.Count)
	case have.Count < want.Count:
		return fmt.Sprintf("%d of the %d commits that were made to it are missing", want.Count-have.Count, want.Count)
	case have.Count == want.Count && have.Hash != want.Hash:
		return fmt.Sprintf("its %d commits are not those that were made to it", have.Count)
	}
	return ""
}

// goneBack says what is wrong with a store that is whole, but has come less far than it was seen to come; "": nothing.
// The mark is the one that it should have.
func goneBack(cfg Config, have, last floor.Mark) (string, floor.Mark) {
	if cfg.Recent == "" {
		return "", last
	}
	m, found, err := floor.Read(cfg.FS, cfg.Recent)
	if err != nil || !found || m.ID != have.ID {
		return "", last // another one was here
	}
	if what := compare(have, m, true); what != "" {
		return "it was put back from an older copy: " + what, m
	}
	return "", last
}

// token names a loss, so that what is accepted is what was said.
func token(want, have floor.Mark) string { return fmt.Sprintf("%d-%d", want.Count, have.Count) }

func newMark() floor.Mark { return floor.Mark{ID: rand.Uint64()} }

// Renew opens a store that goes on as another than it was: a copy out of a
// backup, or one whose loss is accepted. Whatever it lacks is no error.
func Renew(cfg Config) (*Store, error) {
	s, err := openAs(cfg.onDisk(), newMark())
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", cfg.Dir, err)
	}
	return s, nil
}

// Accept opens a store whose loss an administrator names by the token of Open's
// error.
func Accept(cfg Config, accepted string) (*Store, error) {
	s, err := Open(cfg)
	var loss *lossError
	switch {
	case err == nil:
		return nil, errors.Join(fmt.Errorf("nothing is missing in store %s", cfg.Dir), s.Close())
	case !errors.As(err, &loss):
		return nil, err
	case loss.Token != accepted:
		return nil, fmt.Errorf("%q does not name what is missing now: %w", accepted, err)
	}
	return Renew(cfg)
}
