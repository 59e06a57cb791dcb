package ctld

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/ctld/wire"
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

type authorKey struct{}

// note is an entry whose outcome is not known yet; nil: none is to be made.
type note struct{ api.AuditEntry }

// WithAuthor has what is changed in ctx noted as somebody's doing; e says whose.
// What nodes report is no change of theirs: it is in the jobs' timelines.
func WithAuthor(ctx context.Context, e api.AuditEntry) context.Context {
	return context.WithValue(ctx, authorKey{}, e)
}

// noteOf is the note for a change in ctx.
func noteOf(ctx context.Context) *note {
	e, ok := ctx.Value(authorKey{}).(api.AuditEntry)
	if !ok {
		return nil
	}
	return &note{e}
}

// about says what is changed, and how.
func (n *note) about(object, change string) *note {
	if n != nil {
		n.Object, n.Change = object, change
	}
	return n
}

// record makes the entry's record, in the loop.
func (l *loop) record(n *note, result string) state.Record {
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

func shorten(text string) string {
	if len(text) <= maxChange {
		return text
	}
	return strings.ToValidUTF8(text[:maxChange], "") + "…"
}

// tell fills in what an event does: before is the view from before it.
func (n *note) tell(before *state.View, ev control.Event, answer any) (result string) {
	if r, ok := answer.(*state.Refusal); ok {
		result = "refused: " + r.Message
	}
	switch e := ev.(type) {
	case control.NodeSync: // by root, for a node of this machine
		return ""
	case control.Submit:
		if e.DryRun {
			return ""
		}
		n.Object, n.Change = "project "+e.Project, "job "+e.Spec.Name
		switch a := answer.(type) {
		case control.Past: // it is sent again
			return ""
		case control.Submitted:
			if a.Repeated {
				return ""
			}
			n.Object, n.Change = fmt.Sprintf("job %d", a.Number), fmt.Sprintf("submitted for project %s, %s", e.Project, a.State)
		}
	case control.Act:
		n.Object, n.Change = acted(e, answer.([]control.Outcome))
	case control.Drain:
		n.Object, n.Change = drained(before, e)
	case control.Forget:
		n.Object, n.Change = "node "+e.Node, "forgotten"
	case control.Reserve:
		n.Object, n.Change = "reservation "+e.Window.Name, fmt.Sprintf("from %s until %s, nodes %s", wire.Time(e.Window.Start).Format(time.RFC3339), wire.Time(e.Window.End).Format(time.RFC3339), strings.Join(e.Window.Nodes, ","))
	case control.Resize:
		n.Object, n.Change = fmt.Sprintf("job %d", e.Number), "resized"
		if o, ok := answer.(control.Outcome); ok {
			if n.Change = cmp.Or(o.Message, n.Change); o.Refusal != nil {
				result = "refused: " + o.Refusal.Message
			}
		}
	case control.SetSecrets:
		n.Object, n.Change = fmt.Sprintf("job %d", e.Number), "secrets set: "+strings.Join(e.Names, ", ")
	case control.Unreserve:
		n.Object, n.Change = "reservation "+e.Name, "removed"
	case control.Reconfigure: // who sends it has said what it is
	default:
		n.Change = fmt.Sprintf("%T", ev)
	}
	return cmp.Or(result, "ok")
}

func acted(e control.Act, list []control.Outcome) (object, change string) {
	var jobs, how strings.Builder
	for i, o := range list {
		fmt.Fprintf(&jobs, " %d", e.Numbers[i])
		switch {
		case o.Refusal != nil:
			fmt.Fprintf(&how, "; %d refused", e.Numbers[i])
		case o.Before != o.After:
			fmt.Fprintf(&how, "; %d %s -> %s", e.Numbers[i], o.Before, o.After)
		}
	}
	return "jobs" + jobs.String(), string(e.Action) + how.String()
}

func drained(before *state.View, e control.Drain) (object, change string) {
	was := ""
	if n := before.Node(e.Node); n != nil && e.GPU == "" {
		was = n.Drained
	}
	object = "node " + e.Node
	if e.GPU != "" {
		object += " GPU " + e.GPU
	}
	return object, fmt.Sprintf("drained: %q -> %q", was, e.Reason)
}
