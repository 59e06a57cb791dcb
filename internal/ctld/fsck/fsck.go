package fsck

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"gbatch/internal/control"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/internal/store"
	"gbatch/sched"
)

// Report is what was found.
type Report struct {
	Records int
	Bad     []string // each a sentence
	Aside   int      // of the bad ones, how many were taken out
}

// Check looks at the records of a controller's directory. With takeOut, those
// that cannot be read are set aside.
func Check(c site.Config, now sched.Time, takeOut bool) (Report, error) {
	if err := errors.Join(c.Alone(), c.CheckFiles()); err != nil {
		return Report{}, err
	}
	st, err := store.Open(store.Config{Dir: filepath.Join(c.Dir, site.StoreDir), Recent: c.RecentPath()})
	if err != nil {
		return Report{}, err
	}
	out, err := check(st, takeOut)
	if err == nil && len(out.Bad) == out.Aside { // else a controller would not load it
		if err := loads(c, st, now); err != nil {
			out.Bad = append(out.Bad, fmt.Sprintf("the records contradict each other: %v", err))
		}
	}
	return out, errors.Join(err, st.Close())
}

// check reads each record.
func check(st *store.Store, takeOut bool) (out Report, err error) {
	var bad []state.Record
	next := job.Number(1)
	err = st.Everything(func(r state.Record) error {
		out.Records++
		next = max(next, r.Job+1)
		if err := Readable(r); err != nil {
			out.Bad = append(out.Bad, fmt.Sprintf("%s: %v", r.Where(), err))
			r.Value = bytes.Clone(r.Value)
			bad = append(bad, r)
		}
		return nil
	})
	if err != nil {
		return out, fmt.Errorf("after %d records: %w: restore a backup by `gctld restore`", out.Records, err)
	}
	if len(bad) > 0 && takeOut {
		if err := st.SetAside(bad, next); err != nil {
			return out, err
		}
		out.Aside = len(bad)
	}
	return out, nil
}

// Readable decodes a record as its readers do.
func Readable(r state.Record) error {
	switch r.Kind {
	case state.KindJob, state.KindHistory:
		j, err := state.DecodeJob(r.Value)
		if err == nil && j.Number != r.Job {
			err = fmt.Errorf("it is of job %d", j.Number)
		}
		return err
	case state.KindNode:
		_, err := state.DecodeNode(r.Name, r.Value)
		return err
	case state.KindToken:
		_, err := access.StoredToken(r)
		return err
	case state.KindSecret, state.KindUUID, state.KindTasks, state.KindFloor, state.KindKeyFile:
		return nil // not JSON; their readers look at them
	}
	if !json.Valid(r.Value) {
		return errors.New("it is not JSON")
	}
	return nil
}

// loads makes a controller out of the records.
func loads(c site.Config, st *store.Store, now sched.Time) (err error) {
	defer func() { // records that say what no controller writes
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	rules, err := c.Rules()
	if err != nil {
		return err
	}
	ctl, err := control.New(rules, st.Epoch())
	if err == nil {
		err = st.Load(ctl.Load)
	}
	if err == nil {
		err = ctl.Loaded(now)
	}
	if err == nil {
		err = ctl.Check()
	}
	return err
}
