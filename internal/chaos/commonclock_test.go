package chaos

import (
	"encoding/binary"
	"time"

	"github.com/hashicorp/raft"
)

// commonClock is what is known of the clock of who leads, in milliseconds: the next one goes on where that had come to.
type commonClock struct {
	known  bool
	agreed int64 // as the latest entry says that was agreed on
	ahead  int64 // of the true time, by the entry that says most

	last  *elector      // began to lead last,
	shown int64         // what its newest entry since then says that is on its disk,
	at    time.Duration // and when that came there; 0: none did
}

// shownBy is what an entry's author says that its clock showed, and the term in which it began to lead.
func shownBy(entry []byte) (term uint64, ms int64) {
	return binary.BigEndian.Uint64(entry[1:]), int64(binary.BigEndian.Uint64(entry[9:]))
}

// proposed notes what one that takes itself for the leader proposes.
func (a *audit) proposed(entry []byte) {
	_, ms := shownBy(entry)
	a.mu.Lock()
	defer a.mu.Unlock()
	if ahead := ms - time.Now().UnixMilli(); !a.common.known || ahead > a.common.ahead {
		a.common.known, a.common.ahead = true, ahead
	}
}

// applied notes what was agreed on, but what each member passes over.
func (a *audit) applied(l *raft.Log) {
	term, ms := shownBy(l.Data)
	a.mu.Lock()
	defer a.mu.Unlock()
	if term == l.Term {
		a.common.agreed = max(a.common.agreed, ms)
	}
}

// written notes an entry of one that takes itself for the leader, which is on its disk.
func (a *audit) written(by *elector, entry []byte) {
	_, ms := shownBy(entry)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.common.last == by && ms > a.common.shown {
		a.common.shown, a.common.at = ms, a.w.now()
	}
}

// goesOn looks at the clock of one that begins to lead: it is not before what was agreed on, and not ahead of where it
// would be had it gone on since it was ahead most. Of one that also led last it has gone on meanwhile.
func (a *audit) goesOn(by *elector, ms int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	member, c := by.m.id, &a.common
	if lost := c.shown + (a.w.now() - c.at).Milliseconds() - ms; c.last == by && c.at > 0 && lost > 1 {
		a.violated("controller %d leads again, and its clock has lost %d ms meanwhile", member, lost)
	}
	if c.last != by {
		c.last, c.shown, c.at = by, 0, 0
	}
	switch ahead := ms - time.Now().UnixMilli(); {
	case ms < a.common.agreed:
		a.violated("controller %d leads, and its clock is %d ms before what was agreed on", member, a.common.agreed-ms)
	case a.common.agreed > 0 && ahead > a.common.ahead+1:
		a.violated("controller %d leads, and its clock is %d ms ahead of the common one", member, ahead-a.common.ahead)
	}
}
