package quota

import (
	"testing"

	"gbatch/internal/state"
	"gbatch/sched"
)

// TestDay: a day takes off a day's allowance, however often something is stored
// in between, and nothing is gained by storing often.
func TestDay(t *testing.T) {
	const perDay = 1440 * 100 // 100 a minute
	l := Limits{DayBytes: perDay}
	b := New()
	now := sched.Time(1_000_000)
	b.Store(now, "ann", l, Amount{Bytes: perDay})
	if b.Refuse(now, "ann", l, Amount{Bytes: 1}) == nil {
		t.Error("one more was let in at once")
	}
	if r := b.Refuse(now, "bob", l, Amount{Bytes: perDay}); r != nil {
		t.Errorf("another user: %v", r)
	}
	stored := int64(0)
	for end := now + sched.Day/2; now < end; now += 7 * sched.Second {
		if b.Refuse(now, "ann", l, Amount{Bytes: 50}) == nil {
			b.Store(now, "ann", l, Amount{Bytes: 50})
			stored += 50
		}
	}
	if want := int64(perDay / 2); stored < want-100 || stored > want {
		t.Errorf("in half a day %d bytes were let in, want %d", stored, want)
	}
	now += 400 * sched.Day
	if r := b.Refuse(now, "ann", l, Amount{Bytes: perDay}); r != nil {
		t.Errorf("after long: %v", r)
	}
}

// TestStoredIsKept: what a user has stored within a day is kept in few records,
// and a new book that has them lets in hardly more than the old one would have.
func TestStoredIsKept(t *testing.T) {
	const perDay = 1440 * 1000
	l := Limits{DayBytes: perDay}
	b, now := New(), sched.Time(sched.Day)
	var last Stored
	kept := 0
	for range 900 {
		if keep, due := b.Store(now, "ann", l, Amount{Bytes: perDay / 1000}); due {
			last, kept = keep, kept+1
		}
	}
	if kept == 0 || kept > 100 {
		t.Errorf("900 changes are kept in %d records", kept)
	}
	b = New()
	b.Load("ann", last)
	b.Recount(&state.Table{})
	if b.Refuse(now, "ann", l, Amount{Bytes: perDay/10 + perDay/fineness}) == nil {
		t.Error("a restart gave back what was stored")
	}
	if r := b.Refuse(now, "ann", l, Amount{Bytes: perDay / 10}); r != nil {
		t.Errorf("what was left is refused: %v", r)
	}
	if keep, due := b.Store(now+sched.Day, "ann", l, Amount{Bytes: 1}); !due || keep.Bytes != 1 {
		t.Errorf("a day later %+v is kept (%t)", keep, due)
	}
}
