package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/state"
)

// giveUp forgets a message that some have not taken for too long. The line of the job's
// timeline about the change has whom it could not tell, for the job's user, and so has
// the audit log, for operators.
func (s *Sender) giveUp(ctx context.Context, k key, left []api.Untold) error {
	said := make([]string, len(left))
	for i, u := range left {
		s.givenUp.Happened("job", k.job, "to", u.To, "error", u.Error)
		said[i] = fmt.Sprintf("%s was not told of %q, and it is given up: %s", u.To, u.Event, u.Error)
	}
	text := strings.Join(said, "; ")
	records := []state.Record{{Kind: state.KindNotice, Job: k.job, Seq: k.version}}
	line := state.Record{Kind: state.KindEvent, Job: k.job, Seq: k.version}
	value, ok, err := s.jobs.Store.Get(line)
	if err != nil {
		return err
	}
	var l state.Line
	if ok && json.Unmarshal(value, &l) == nil { // one that is damaged is told by who shows it
		if l.Message != "" {
			l.Message += "; "
		}
		l.Message += text
		line.Value = state.Encode(l)
		records = append(records, line)
	}
	ctx = loop.WithAuthor(ctx, api.AuditEntry{User: "gctld", Role: "controller", Via: "itself", Action: "tell"})
	return s.loop.Commit(ctx, fmt.Sprintf("job %d", k.job), text, records...)
}
