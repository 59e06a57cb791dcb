package ctld

import (
	"context"
	"time"

	"gbatch/internal/client"
	"gbatch/internal/ctld/scrub"
	"gbatch/internal/state"
	"gbatch/internal/store"
)

// lookThrough reads what this member stores while it follows, until ctx is done: what is damaged there would else be found when it
// is to lead. Its own store then makes way, see replica.Machine.
func (m *Member) lookThrough(ctx context.Context) {
	s := scrub.Scrub{Config: scrub.Config{
		Dir: m.cfg.Dir, Store: followed{m}, Spare: m.spare, Mend: addAgain(m.cfg), Done: func(time.Time, int) {}, Now: time.Now, Log: m.log, Wait: client.Sleep,
	}}
	s.Run(ctx)
}

// spare says whether the disk of the store has more room than the controller needs.
func (m *Member) spare() (spare bool) {
	_ = m.replica.Read(func(s *store.Store) error {
		free, err := s.Free()
		spare = err == nil && free > uint64(2*m.cfg.ReserveMiB)<<20
		return nil
	})
	return spare
}

// followed is the store of a member, which may be another one by and by.
type followed struct{ m *Member }

// Scrub is that of the store that is there. Entries go on being applied to it meanwhile.
func (f followed) Scrub(dir string, take func(state.Record) error) (damage, err error) {
	var st *store.Store
	if err := f.m.replica.Read(func(s *store.Store) error { st = s; return nil }); err != nil || st == nil {
		return nil, err
	}
	return st.Scrub(dir, take)
}
