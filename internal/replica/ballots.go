package replica

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	wal "github.com/hashicorp/raft-wal"

	"gbatch/oci/atomicfile"
)

// joinedFile is in the directory of the common log of a member that was added.
const joinedFile = "joined"

// joined is what it says.
type joined struct {
	Entry uint64 `json:"entry"` // by which it was added, or a later one that was agreed on then
}

// MakeDir makes the directory of a member that gets all from the others, which have added it by
// an entry of their log; 0: it is not known by which.
func MakeDir(dir string, entry uint64) error {
	if err := os.MkdirAll(filepath.Join(dir, logDir), 0o700); err != nil || entry == 0 {
		return err
	}
	text, err := json.Marshal(joined{Entry: entry})
	if err != nil {
		return err
	}
	return atomicfile.WriteDurable(filepath.Join(dir, joinedFile), atomicfile.Sum(text))
}

// joinedBy reads by which entry this member was added; 0 where there is no such file.
func joinedBy(dir string) (uint64, error) {
	var j joined
	err := atomicfile.ReadJSON(filepath.Join(dir, joinedFile), &j)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("read by which entry this controller was added: %w; take it out by `gadm controllers remove` on another one, empty its directory, and add it again (docs/controllers.md)", err)
	}
	return j.Entry, nil
}

// ballots is what the library keeps beside the log: its term, and for whom it voted in that. A member that
// has not come to the entry by which it was added votes for nobody, itself included. Its
// machine may have been a member before, and been taken out and emptied: one that missed that asks
// it still, and would get from it a vote that it gave up by having entries which are gone. With that one,
// those two could lead, and what the others agreed on meanwhile would be lost.
type ballots struct {
	*wal.WAL
	fsm  *Machine
	from uint64
}

var errNewcomer = errors.New("this controller has not come to the entry of the common log by which it was added, and votes for nobody")

// may says whether this member votes.
func (b ballots) may() bool {
	if last, err := b.LastIndex(); err == nil && last >= b.from {
		return true
	}
	st := b.fsm.current() // it has a copy, and no entries after that
	return st != nil && st.Applied() >= b.from
}

// SetUint64 keeps a number of the library's.
func (b ballots) SetUint64(key []byte, n uint64) error {
	if string(key) == voteTerm && !b.may() {
		return errNewcomer
	}
	err := b.WAL.SetUint64(key, n)
	if err != nil && string(key) != voteTerm { // raft panics where it cannot keep its term, as it may do nothing then
		b.fsm.log.Error("this controller cannot keep in which term it is, and ends; look at the disk", "error", err)
	}
	return err
}

// voteTerm is what the library keeps first of a vote, and of nothing else: it does not vote where it cannot.
const voteTerm = "LastVoteTerm"
