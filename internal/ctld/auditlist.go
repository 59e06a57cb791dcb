package ctld

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/state"
)

// auditLog shows who changed what.
type auditLog struct {
	store interface {
		Newest(state.Kind, func(state.Record) (bool, error)) error
	}
}

type auditInput struct {
	User   string    `query:"user"`
	Since  time.Time `query:"since"`
	Object string    `query:"object" doc:"a word of what was changed, as gpu01 or 12"`
	Limit  int       `query:"limit" minimum:"0" maximum:"10000" doc:"entries; 0: 100"`
}

// auditScan bounds how many entries one question looks at in each of the logs.
const auditScan = 200_000

// list is the audit log, the newest entries first.
func (s *auditLog) list(_ context.Context, in *auditInput) (*api.AuditList, error) {
	out := api.AuditList{Entries: []api.AuditEntry{}}
	limit := cmp.Or(in.Limit, 100)
	for _, kind := range state.AuditKinds {
		list, err := s.newest(kind, in, limit)
		if err != nil {
			return nil, err
		}
		out.Entries = append(out.Entries, list...)
	}
	slices.SortFunc(out.Entries, func(a, b api.AuditEntry) int { return cmp.Compare(b.Seq, a.Seq) })
	out.Entries = out.Entries[:min(limit, len(out.Entries))]
	return &out, nil
}

// newest is as many entries of one of the logs as are asked for, the newest first.
func (s *auditLog) newest(kind state.Kind, in *auditInput, limit int) (out []api.AuditEntry, err error) {
	looked := 0
	err = s.store.Newest(kind, func(r state.Record) (bool, error) {
		var e api.AuditEntry
		if err := json.Unmarshal(r.Value, &e); err != nil {
			return false, fmt.Errorf("decode audit record %d: %w", r.Seq, err)
		}
		if looked++; e.Time.Before(in.Since) || looked > auditScan {
			return false, nil
		}
		if (in.User == "" || e.User == in.User) && (in.Object == "" || hasWord(e.Object, in.Object)) {
			out = append(out, e)
		}
		return len(out) < limit, nil
	})
	return out, err
}

func hasWord(text, word string) bool {
	for w := range strings.FieldsSeq(text) {
		if w == word {
			return true
		}
	}
	return false
}
