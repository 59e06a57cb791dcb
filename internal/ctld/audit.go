package ctld

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/state"
)

// The audit log: who changed what. An entry is stored in the commit of what it
// tells of, so that there is neither without the other.

// maxAudit is how many entries are kept, the newest; pruneEvery is how many more
// there may be until old ones are dropped.
const (
	maxAudit   = 1_000_000
	pruneEvery = 1000
)

// maxChange bounds the text of an entry, in bytes.
const maxChange = 300

// deniedEvery and deniedBurst bound the entries about requests that were denied:
// nobody fills the log by asking for what they may not have.
const (
	deniedEvery = time.Second
	deniedBurst = 100
)

type actionKey struct{}

// note is an entry whose outcome is not known yet; nil: none is to be made.
type note struct{ api.AuditEntry }

// noteOf is the note for a change by a person. What nodes report is no change of
// theirs: it is in the jobs' timelines.
func noteOf(ctx context.Context) *note {
	id := caller(ctx)
	if id.role == "" || id.role == roleNode {
		return nil
	}
	action, _ := ctx.Value(actionKey{}).(string)
	return &note{api.AuditEntry{User: id.user, Role: string(id.role), From: id.from, Via: id.via, Action: action}}
}

// record makes the entry's record, in the loop.
func (l *loop) record(n *note, result string) state.Record {
	l.audited++
	if l.audited%pruneEvery == 0 && l.audited > maxAudit {
		if err := l.store.Prune(state.KindAudit, l.audited-maxAudit); err != nil {
			l.log.Error("audit log not shortened", "err", err)
		}
	}
	n.Seq, n.Time, n.Result = l.audited, toTime(l.now), result
	n.Object, n.Change = shorten(n.Object), shorten(n.Change)
	return state.Record{Kind: state.KindAudit, Seq: n.Seq, Value: encode(n.AuditEntry)}
}

func shorten(text string) string {
	if len(text) <= maxChange {
		return text
	}
	return strings.ToValidUTF8(text[:maxChange], "") + "…"
}

// tell fills in what an event did, and returns its result; empty: no entry.
func (n *note) tell(a control.Audit) (result string) {
	if a.Nothing {
		return ""
	}
	if a.Object != "" {
		n.Object, n.Change = a.Object, a.Change
	}
	if a.Refusal != nil {
		return "refused: " + a.Refusal.Message
	}
	return "ok"
}

// commit stores what is not the controller's (tokens, keys) with its entry.
func (s *Server) commit(ctx context.Context, object, change string, records ...state.Record) error {
	n := noteOf(ctx)
	if n != nil {
		n.Object, n.Change = object, change
	}
	return s.loop.send(context.WithoutCancel(ctx), request{records: records, note: n})
}

// auditDenied notes a request that a door did not admit. It does not wait: the
// caller is told in any case.
func (s *Server) auditDenied(r *http.Request, id identity, e *api.Error) {
	s.log.Info("denied", "user", id.user, "role", id.role, "from", id.from, "action", r.Method+" "+r.URL.Path)
	if !s.deniedRate.Allow() || id.role == roleNode || id.role == roleJoin {
		return
	}
	n := &note{api.AuditEntry{User: id.user, Role: string(id.role), From: id.from, Via: id.via, Action: r.Method + " " + r.URL.Path}}
	select {
	case s.loop.inbox <- request{note: n, denied: "denied: " + e.Message, reply: make(chan error, 1)}:
	default: // the loop has more important things to do
	}
}

func newDeniedRate() *rate.Limiter { return rate.NewLimiter(rate.Every(deniedEvery), deniedBurst) }

type auditInput struct {
	User   string    `query:"user"`
	Since  time.Time `query:"since"`
	Object string    `query:"object" doc:"a word of what was changed, as gpu01 or 12"`
	Limit  int       `query:"limit" minimum:"0" maximum:"10000" doc:"entries; 0: 100"`
}

// auditScan bounds how many entries one question looks at.
const auditScan = 200_000

func (s *Server) audit(_ context.Context, in *auditInput) (*body[api.AuditList], error) {
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
		return nil, s.fail(err)
	}
	return &body[api.AuditList]{out}, nil
}

func hasWord(text, word string) bool {
	for w := range strings.FieldsSeq(text) {
		if w == word {
			return true
		}
	}
	return false
}
