package control

import (
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/control/quota"
	"gbatch/internal/control/templates"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// SetSecrets replaces what is sealed for a job by new values of its secrets.
// The caller has merged them with those of version Base, and checked that the
// job is By's.
type SetSecrets struct {
	Number job.Number
	Base   uint32
	Sealed []byte
	Names  []string // of those that are new, for the timeline
	By     string
}

// secretsSet answers SetSecrets. A false Done means that somebody was faster:
// merge again.
type secretsSet struct {
	Done    bool
	Version uint32
	State   job.State
}

func (e SetSecrets) apply(s *step) (secretsSet, *state.Refusal) {
	j := s.jobs.get(e.Number)
	switch {
	case j == nil:
		return secretsSet{}, state.NoSuchJob(fmt.Sprint(e.Number))
	case j.State.Final():
		return secretsSet{}, &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("job %d is %s: its secrets were deleted", j.Number, j.State)}
	case j.Parent > 0:
		return secretsSet{}, &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("task %s has the secrets of its array", j.ID()), Hint: fmt.Sprintf("set those of job %d", j.Parent)}
	case templates.Maker(j, &s.jobs.table) != nil:
		return secretsSet{}, &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("job %d has the secrets of the template that made it", j.Number), Hint: fmt.Sprintf("set those of job %d", j.Template)}
	case j.Secrets == 0:
		return secretsSet{}, &state.Refusal{Code: state.Conflict, Message: fmt.Sprintf("job %d was submitted without secrets, so its container has no place for them", j.Number),
			Hint: "name them in the job's gbatch.secrets when it is submitted"}
	case j.Secrets != e.Base:
		return secretsSet{Version: j.Secrets, State: j.State}, nil
	}
	size := int64(len(e.Sealed))
	if r := s.jobs.tooMuch(j.Owner.User, quota.Amount{Bytes: max(size-int64(j.SealedBytes), 1)}); r != nil {
		return secretsSet{}, r
	}
	s.jobs.stored(j.Owner.User, quota.Amount{Bytes: size, Records: 1})
	names := slices.Sorted(slices.Values(e.Names))
	s.out.Store(state.Record{Kind: state.KindSecret, Job: j.Document(), Value: e.Sealed})
	j = s.jobs.change(j, fmt.Sprintf("secrets %s set by %s", strings.Join(names, ", "), e.By), func(j *state.Job) {
		j.Secrets++
		j.Sealed, j.SealedBytes = true, int32(size)
	})
	sharers := append(s.arrays.children(j.Number), j)
	if j.Cron != nil {
		if made := s.jobs.get(j.Cron.Last); made != nil && !made.State.Final() {
			made = s.jobs.change(made, fmt.Sprintf("secrets %s of job %d set by %s", strings.Join(names, ", "), j.Number, e.By), func(m *state.Job) { m.Secrets = j.Secrets })
			sharers = append(append(sharers, made), s.arrays.children(made.Number)...)
		}
	}
	for _, j := range sharers {
		if j.State.Active() {
			s.nodes.wakeAll(j)
		}
	}
	return secretsSet{Done: true, Version: j.Secrets, State: j.Status()}, nil
}

func (e SetSecrets) audit(secretsSet) Audit {
	return Audit{Object: fmt.Sprintf("job %d", e.Number), Change: "secrets set: " + strings.Join(e.Names, ", ")}
}
