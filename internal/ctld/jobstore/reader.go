package jobstore

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/ctld/wire"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/internal/store"
)

// Reader reads jobs wherever they are: in the table, or in the store when they
// have left it. It writes nothing.
type Reader struct {
	View  func() *state.View
	Store *store.Store
	Vault *Vault

	documents documents
}

// Find gets a job by what a user types, from the table or from history; nil
// without an error means that there is none.
func (r *Reader) Find(text string) (*state.Job, error) {
	j, refusal := r.View().Find(text)
	if refusal == nil {
		return j, nil
	}
	if refusal.Code != state.NotFound {
		return nil, wire.Refused(refusal)
	}
	if n, set, ok := state.ParseTask(text); ok && set.Len() == 1 {
		return r.pastTask(n, set[0].First, refusal)
	}
	n, ok := job.ParseNumber(text)
	if !ok {
		raw, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
		if err != nil || len(raw) != 16 {
			return nil, wire.Refused(refusal)
		}
		if n, ok, err = r.Store.NumberOf([16]byte(raw)); err != nil || !ok {
			return nil, errors.Join(err, wire.Refused(refusal))
		}
	}
	j, err := r.Past(n)
	if err == nil && j == nil {
		return nil, wire.Refused(refusal)
	}
	return j, err
}

// Past is a job that has ended; nil without an error: there is none in history.
func (r *Reader) Past(n job.Number) (*state.Job, error) {
	v, ok, err := r.Store.Get(state.Record{Kind: state.KindHistory, Job: n})
	if err != nil || !ok {
		return nil, err
	}
	return state.DecodeJob(v)
}

// pastTask finds a task that is no job of the table; refusal is the answer if
// there is none.
func (r *Reader) pastTask(parent job.Number, index int, refusal *state.Refusal) (*state.Job, error) {
	p := r.View().Job(parent)
	var err error
	if p == nil {
		if p, err = r.Past(parent); err != nil || p == nil {
			return nil, errors.Join(err, wire.Refused(refusal))
		}
	}
	n, ok, err := r.Store.NumberOf(p.TaskUUID(index))
	switch {
	case err != nil:
		return nil, err
	case ok:
		return r.Past(n)
	}
	j, why := p.PendingTask(index)
	if why != nil {
		return nil, wire.Refused(why)
	}
	return j, nil
}

// NumberOf is the job with a UUID, if the store has ever had one.
func (r *Reader) NumberOf(id [16]byte) (job.Number, bool, error) { return r.Store.NumberOf(id) }

// maxShown bounds the lines of a timeline, and the attempts, that are shown: a
// job may be held and released without end.
const maxShown = 1000

// Timeline is what has happened to a job lately.
//
// Records that its Version does not know of are left out, here and of its attempts and steps: the store has them before
// they are on the disk.
func (r *Reader) Timeline(j *state.Job) ([]api.Event, error) {
	return newestOf(r, state.Record{Kind: state.KindEvent, Job: j.Number, Seq: j.Version}, func(rec state.Record) (api.Event, error) {
		e, err := wire.Event(rec.Value)
		return e, unreadable("timeline", j.Number, err)
	})
}

// Attempts are the last ones of a job that are over.
func (r *Reader) Attempts(j *state.Job) ([]api.Attempt, error) {
	last := uint64(j.Try())
	if last == 0 {
		return nil, nil
	}
	if j.State.Active() {
		last--
	}
	return newestOf(r, state.Record{Kind: state.KindAttempt, Job: j.Number, Seq: last}, func(rec state.Record) (api.Attempt, error) {
		var a state.Attempt
		if err := json.Unmarshal(rec.Value, &a); err != nil {
			return api.Attempt{}, unreadable("record of an attempt", j.Number, err)
		}
		return wire.Attempt(&a), nil
	})
}

// Attempt is one of a job that began, by its number; 0: the last; nil without an
// error: there was none.
func (r *Reader) Attempt(j *state.Job, number uint32) (*state.Attempt, error) {
	if j.Try() == 0 || number == 0 || number == j.Try() {
		return j.Last(), nil
	}
	v, ok, err := r.Store.Get(state.Record{Kind: state.KindAttempt, Job: j.Number, Seq: uint64(number)})
	if err != nil || !ok {
		return nil, err
	}
	at := new(state.Attempt)
	if err := json.Unmarshal(v, at); err != nil {
		return nil, unreadable("record of an attempt", j.Number, err)
	}
	return at, nil
}

// Steps are the last ones that srun started in a job.
func (r *Reader) Steps(j *state.Job) ([]api.Step, error) {
	at := j.Last()
	if at == nil {
		return nil, nil
	}
	running := map[uint64]*state.Launch{}
	var set state.Launches
	if at.Launches != nil {
		set = *at.Launches
	}
	for i := range set.Running {
		running[at.StepSeq(set.Running[i].Number)] = &set.Running[i]
	}
	before := at.StepSeq(set.Next)
	return newestOf(r, state.Record{Kind: state.KindLaunch, Job: j.Number, Seq: before - 1}, func(rec state.Record) (api.Step, error) {
		if l := running[rec.Seq]; l != nil {
			return wire.Step(j, l), nil
		}
		var l state.Launch
		if err := json.Unmarshal(rec.Value, &l); err != nil {
			return api.Step{}, unreadable("record of a step", j.Number, err)
		}
		return wire.Step(j, &l), nil
	})
}

// LaunchSecret is what the ranks of a job's attempt know each other by.
func (r *Reader) LaunchSecret(j *state.Job) string {
	return hex.EncodeToString(r.Vault.Key(fmt.Sprintf("launch %x %d", j.UUID, j.Try())))
}

// newestOf is the records of a job from last back, in the order in which they came.
func newestOf[T any](r *Reader, last state.Record, decode func(state.Record) (T, error)) (out []T, err error) {
	err = r.Store.NewestOf(last.Kind, last.Job, func(rec state.Record) (bool, error) {
		if rec.Seq > last.Seq {
			return true, nil
		}
		x, err := decode(rec)
		out = append(out, x)
		return len(out) < maxShown, err
	})
	slices.Reverse(out)
	return out, err
}

// Document is what a job was asked as. Jobs that the controller made itself
// share that of the job they come from.
func (r *Reader) Document(j *state.Job) (*job.Spec, error) {
	text, err := r.text(j)
	if err != nil {
		return nil, err
	}
	return document(j, text)
}

// text is a job's document as it is stored.
func (r *Reader) text(j *state.Job) ([]byte, error) {
	text, ok, err := r.Text(j.Document())
	if err != nil {
		return nil, fmt.Errorf("read document of job %d: %w", j.Number, err)
	}
	if !ok {
		return nil, unreadable("document", j.Number, errors.New("it is not there"))
	}
	return text, nil
}

// document is what a job's stored text says.
func document(j *state.Job, text []byte) (*job.Spec, error) {
	spec := new(job.Spec)
	if err := json.Unmarshal(text, spec); err != nil {
		return nil, unreadable("document", j.Number, err)
	}
	if j.Cron == nil && spec.Gbatch != nil {
		spec.Gbatch.Cron = nil // that is the template's, which made it or the array that it is a task of
	}
	return spec, nil
}

// unreadable is what users are told of a job's record that is damaged; why goes to
// the log. It is nil where why is.
func unreadable(what string, n job.Number, why error) error {
	if why == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", api.Errorf(api.CodeInternal, "the %s of job %d cannot be read from the controller's store any more", what, n).
		WithHint("tell an operator: `gctld fsck` names each damaged record"), why)
}

// Text is the document of a job as it is stored.
func (r *Reader) Text(n job.Number) ([]byte, bool, error) {
	return r.Store.Get(state.Record{Kind: state.KindSpec, Job: n})
}

// Unseal reads what is stored encrypted with a job.
func (r *Reader) Unseal(n job.Number) (Sealed, error) {
	text, ok, err := r.Store.Get(state.Record{Kind: state.KindSecret, Job: n})
	if err != nil || !ok {
		return Sealed{}, fmt.Errorf("read credentials of job %d (there: %t): %w", n, ok, err)
	}
	return r.Vault.open(text)
}

// SealSubmission puts what a submission must hide into the event.
func (r *Reader) SealSubmission(ev *control.Submit, sub *job.Submission) error {
	if err := sub.Spec.CheckSecrets(sub.Secrets); err != nil {
		return err
	}
	keep := Sealed{Secrets: sub.Secrets}
	if c := sub.Registry; c != nil {
		keep.Credential = api.Credential{Username: c.Username, Password: c.Password}
	}
	if keep.empty() {
		return nil
	}
	var err error
	ev.Sealed, err = r.Vault.Seal(keep)
	ev.Secrets = len(sub.Secrets) > 0
	return err
}
