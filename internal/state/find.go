package state

import (
	"encoding/hex"
	"fmt"
	"strings"

	"gbatch/internal/job"
	"gbatch/internal/job/indexes"
)

// Find resolves what people type: a number, a UUID, or the beginning of a UUID
// (at least six digits) that only one job in the table has.
func (v *View) Find(text string) (*Job, *Refusal) {
	if n, ok := job.ParseNumber(text); ok {
		if j := v.Jobs.Get(n); j != nil {
			return j, nil
		}
		return nil, NoSuchJob(text)
	}
	if n, set, ok := ParseTask(text); ok && set.Len() == 1 {
		return v.findTask(n, set[0].First)
	}
	prefix := normUUID(text)
	if len(prefix) < 6 {
		return nil, &Refusal{Code: NotFound, Message: fmt.Sprintf("%q is no job id", text),
			Hint: "use a number as gqueue shows it, or a UUID, or the first six or more digits of one"}
	}
	var found *Job
	for j := range v.Jobs.All() {
		if h := hex.EncodeToString(j.UUID[:]); len(prefix) <= len(h) && h[:len(prefix)] == prefix {
			if found != nil {
				return nil, &Refusal{Code: Conflict, Message: fmt.Sprintf("%q begins the UUID of jobs %d and %d", text, found.Number, j.Number),
					Hint: "give more digits, or the number"}
			}
			found = j
		}
	}
	if found == nil {
		return nil, NoSuchJob(text)
	}
	return found, nil
}

func NoSuchJob(text string) *Refusal {
	return &Refusal{Code: NotFound, Message: fmt.Sprintf("there is no job %s", text)}
}

// ParseTask reads what people write for tasks of an array: 123_7, or 123_[3-9,12].
func ParseTask(text string) (job.Number, indexes.Set, bool) {
	number, list, ok := strings.Cut(text, "_")
	n, isNumber := job.ParseNumber(number)
	if !ok || !isNumber {
		return 0, nil, false
	}
	inner, bracketed := strings.CutPrefix(list, "[")
	if bracketed {
		if inner, ok = strings.CutSuffix(inner, "]"); !ok {
			return 0, nil, false
		}
	} else if strings.Trim(list, "0123456789") != "" {
		return 0, nil, false
	}
	set, err := indexes.Parse(inner)
	return n, set, err == nil
}

// findTask finds a task by its array's number and its index. One that is no job
// yet, or never became one, is shown as a job without a number.
func (v *View) findTask(parent job.Number, index int) (*Job, *Refusal) {
	for j := range v.Jobs.from(parent) {
		if j.Parent == parent && j.Index == index {
			return j, nil
		}
	}
	name := fmt.Sprintf("%d_%d", parent, index)
	p := v.Jobs.Get(parent)
	if p == nil {
		return nil, NoSuchJob(name)
	}
	return p.PendingTask(index)
}

// normUUID is the lower-case hex digits of a UUID or of the beginning of one;
// empty when s is neither.
func normUUID(s string) string {
	s = strings.ToLower(strings.ReplaceAll(s, "-", ""))
	if len(s) > 32 || strings.Trim(s, "0123456789abcdef") != "" {
		return ""
	}
	return s
}

// Refusal is the answer to an event that the controller will not do, in words
// for the user.
type Refusal struct {
	Code    Code
	Message string
	Hint    string
	Path    string // in the job document, where the refusal is about one field
}

func (r *Refusal) Error() string { return r.Message }

// Code is the kind of a refusal.
type Code string

// The codes.
const (
	NotFound      Code = "not_found"
	Conflict      Code = "conflict"
	Denied        Code = "denied"
	Unsatisfiable Code = "unsatisfiable"
	OverLimit     Code = "over_limit" // the queue, or what the user, project or QOS may have in it, is full
)
