package loop

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/ctld/fair"
	"gbatch/internal/ctld/wire"
	"gbatch/internal/state"
	"gbatch/internal/store"
)

// The audit log: who changed what, and who tried in vain. An entry about a change is
// stored in the commit of what it tells of, so that there is neither without the
// other.

// maxAudit is how many entries are kept of each of two logs, the newest; pruneEvery
// is how many more there may be until old ones are dropped. Who changes more than
// perAuthor a day has the rest in the second one, so that nobody drives what others
// did out of the first.
const (
	maxAudit   = 1_000_000
	pruneEvery = 1000
	perAuthor  = 1000
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

// audit is where the audit log ends. The loop owns it.
type audit struct {
	seq     uint64                // of the last entry
	last    map[state.Kind]uint64 // number in each of the logs, which is the record's Seq
	authors fair.Rates            // what each may still write into the first log
}

// open finds out where the log ends.
func (a *audit) open(st *store.Store) error {
	a.last = map[state.Kind]uint64{}
	for _, kind := range state.AuditKinds {
		err := st.Newest(kind, func(r state.Record) (bool, error) {
			var e api.AuditEntry
			err := json.Unmarshal(r.Value, &e) // one that cannot be read is not to keep the controller from its start
			if err != nil {
				e.Seq = r.Seq
			}
			a.last[kind], a.seq = r.Seq, max(a.seq, e.Seq)
			return false, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// record makes the entry's record, in the loop.
func (l *Loop) record(n *Note, result string) state.Record {
	a := &l.audit
	kind := state.KindAudit
	if a.authors.Spend(wire.Time(l.now), n.User, 24*time.Hour/perAuthor, 24*time.Hour) > 0 {
		kind = state.KindBusy
	}
	a.seq++
	a.last[kind]++
	if last := a.last[kind]; last%pruneEvery == 0 && last > maxAudit {
		if err := l.store.Prune(kind, last-maxAudit); err != nil {
			l.log.Error("audit log not shortened", "error", err)
		}
	}
	n.Seq, n.Time, n.Result = a.seq, wire.Time(l.now), result
	n.Object, n.Change = shorten(n.Object), shorten(n.Change)
	return state.Record{Kind: kind, Seq: a.last[kind], Value: wire.Encode(n.AuditEntry)}
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
