package ctld

import (
	"context"
	"encoding/json"
	"fmt"
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

// auditScan bounds how many entries one question looks at.
const auditScan = 200_000

// list is the audit log, the newest entries first.
func (s *auditLog) list(_ context.Context, in *auditInput) (*api.AuditList, error) {
	out := api.AuditList{Entries: []api.AuditEntry{}}
	limit, looked := in.Limit, 0
	if limit == 0 {
		limit = 100
	}
	err := s.store.Newest(state.KindAudit, func(r state.Record) (bool, error) {
		var e api.AuditEntry
		if err := json.Unmarshal(r.Value, &e); err != nil {
			return false, fmt.Errorf("decode audit record %d: %w", r.Seq, err)
		}
		if looked++; e.Time.Before(in.Since) || looked > auditScan {
			return false, nil
		}
		if (in.User == "" || e.User == in.User) && (in.Object == "" || hasWord(e.Object, in.Object)) {
			out.Entries = append(out.Entries, e)
		}
		return len(out.Entries) < limit, nil
	})
	if err != nil {
		return nil, err
	}
	return &out, nil
}

func hasWord(text, word string) bool {
	for w := range strings.FieldsSeq(text) {
		if w == word {
			return true
		}
	}
	return false
}
