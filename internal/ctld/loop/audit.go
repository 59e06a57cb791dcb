package loop

import (
	"context"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/ctld/wire"
	"gbatch/internal/state"
)

// The audit log: who changed what, and who tried in vain. An entry about a change is
// stored in the commit of what it tells of, so that there is neither without the
// other.

// maxAudit is how many entries are kept, the newest; pruneEvery is how many more
// there may be until old ones are dropped.
const (
	maxAudit   = 1_000_000
	pruneEvery = 1000
)

// maxChange bounds the text of an entry, in bytes.
const maxChange = 300

type authorKey struct{}

// Note is an entry whose outcome is not known yet; nil: none is to be made.
type Note struct{ api.AuditEntry }

// WithAuthor has what is changed in ctx noted as somebody's doing; e says whose.
// What nodes report is no change of theirs: it is in the jobs' timelines.
func WithAuthor(ctx context.Context, e api.AuditEntry) context.Context {
	return context.WithValue(ctx, authorKey{}, e)
}

// NoteOf is the note for a change in ctx.
func NoteOf(ctx context.Context) *Note {
	e, ok := ctx.Value(authorKey{}).(api.AuditEntry)
	if !ok {
		return nil
	}
	return &Note{e}
}

// About says what is changed, and how.
func (n *Note) About(object, change string) *Note {
	if n != nil {
		n.Object, n.Change = object, change
	}
	return n
}

// record makes the entry's record, in the loop.
func (l *Loop) record(n *Note, result string) state.Record {
	l.audited++
	if l.audited%pruneEvery == 0 && l.audited > maxAudit {
		if err := l.store.Prune(state.KindAudit, l.audited-maxAudit); err != nil {
			l.log.Error("audit log not shortened", "error", err)
		}
	}
	n.Seq, n.Time, n.Result = l.audited, wire.Time(l.now), result
	n.Object, n.Change = shorten(n.Object), shorten(n.Change)
	return state.Record{Kind: state.KindAudit, Seq: n.Seq, Value: wire.Encode(n.AuditEntry)}
}

// recordRefused makes the records of what was refused, as far as they are due.
func (l *Loop) recordRefused(last bool) (out []state.Record) {
	for _, e := range l.refused.due(l.now, last) {
		l.log.Info("refused", "user", e.User, "from", e.From, "action", e.Action, "object", e.Object, "result", e.Result, "count", e.Count)
		out = append(out, l.record(&Note{e}, e.Result))
	}
	return out
}

// Refused notes an attempt that was refused; e says whose. It does not wait: the
// caller is told in any case.
func (l *Loop) Refused(e api.AuditEntry, why string) {
	e.Result = "denied: " + why
	l.refused.add(e)
}

func shorten(text string) string {
	if len(text) <= maxChange {
		return text
	}
	return strings.ToValidUTF8(text[:maxChange], "") + "…"
}

// tell fills in what an event did, and returns its result; empty: no entry.
func (n *Note) tell(a control.Audit) (result string, refused bool) {
	if a.Nothing {
		return "", false
	}
	if a.Object != "" {
		n.Object, n.Change = a.Object, a.Change
	}
	if a.Refusal != nil {
		return "refused: " + a.Refusal.Message, true
	}
	return "ok", false
}
