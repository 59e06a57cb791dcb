package chaos

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"time"

	"gbatch/internal/state"
)

// alike looks whether all controllers have the same records when all has come to rest.
func (w *world) alike() {
	if w.ctl != nil {
		return
	}
	const patience = 10 * time.Minute
	for until := time.Now().Add(patience); w.ctx.Err() == nil; _ = w.sleep(time.Second) {
		why, differ := w.compare()
		switch {
		case why == "":
			return
		case differ || time.Now().After(until):
			w.audit.violation("%s", why)
			return
		}
	}
}

// compare says why the controllers are not known to have the same records; empty: they have. Differ: they never will.
func (w *world) compare() (why string, differ bool) {
	at := map[uint64]bool{}
	var all []*elector
	for i, m := range w.members {
		m.mu.Lock()
		e, there, why := m.elector, m.kept.there, m.unsound
		m.mu.Unlock()
		switch {
		case e != nil:
			all = append(all, e)
			st := e.store()
			if st == nil {
				return fmt.Sprintf("controller %d has no records", i), false
			}
			at[st.Applied()] = true
		case there:
			return fmt.Sprintf("controller %d does not run: %s", i, why), false
		}
	}
	if len(at) != 1 {
		return fmt.Sprintf("the controllers do not come to the same entry: %v", slices.Sorted(maps.Keys(at))), false
	}
	var want content
	for i, e := range all {
		got, err := e.content()
		switch {
		case err != nil:
			return fmt.Sprintf("read the records of controller %d: %v", e.m.id, err), false
		case i == 0:
			want = got
		case got.at != want.at:
			return "the controllers go on", false
		case got != want:
			return fmt.Sprintf("controllers %d and %d have other records after the same entry, %d", all[0].m.id, e.m.id, got.at), true
		}
	}
	return "", false
}

// content is what a controller stores after an entry.
type content struct {
	at  uint64
	sum [sha256.Size]byte
}

func (e *elector) content() (c content, err error) {
	read := make(chan error, 1)
	if err := e.between(func() {
		st := e.store()
		if st == nil {
			read <- errDown
			return
		}
		h := sha256.New()
		err := st.Everything(func(r state.Record) error {
			fmt.Fprintf(h, "%c %d %d %q %q\n", r.Kind, r.Job, r.Seq, r.Name, r.Value)
			return nil
		})
		fmt.Fprint(h, st.Commits())
		h.Sum(c.sum[:0])
		c.at = st.Applied()
		read <- err
	}); err != nil {
		return c, err
	}
	select {
	case err = <-read:
	case <-e.ctx.Done():
		err = e.ctx.Err()
	}
	return c, err
}
