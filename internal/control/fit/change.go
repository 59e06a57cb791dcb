package fit

import (
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
	"gbatch/sched/words"
)

// MaxPast bounds how many changes are kept of a node.
const MaxPast = 100

// Changes are what is worth a word when old, nil for a new node, is n now; by is who
// did it, empty for nobody. What n's past tells already is not said again, so that a
// reason whose figures change, or a restart, is no change.
func Changes(old, n *state.Node, now sched.Time, by string) []state.NodeChange {
	word, reason := n.State()
	change := state.NodeChange{At: now, State: word, Reason: reason, By: by}
	if old == nil {
		change.Text = fmt.Sprintf("joined, with %s and %s", words.Plural(len(n.Inventory.GPUs), "GPU"), words.Plural(n.Inventory.CPUs, "core"))
		return []state.NodeChange{change}
	}
	var out []state.NodeChange
	add := func(text string) {
		change.Text = text
		out = append(out, change)
	}
	switch {
	case old.Instance != n.Instance:
		add("came back with an empty state directory")
	case old.Boot != n.Boot && old.Boot != "":
		add("was rebooted")
	}
	if text := double(old, n, now); text != "" {
		add(text)
	}
	if text := stateChange(old, n, now); text != "" {
		add(text)
	}
	for _, text := range gpuChanges(old, n) {
		add(text)
	}
	return out
}

// double tells of another machine that says it is n, once an hour; empty: there is none.
func double(old, n *state.Node, now sched.Time) string {
	if old.Double == "" || n.Double != "" || old.Boot != n.Boot {
		return "" // it was the node itself, restarted
	}
	text := "another machine says that it is " + n.Name + ", " + old.Double + ": a copy of its disk? It is refused"
	for _, c := range n.Past {
		if c.Text == text && now-c.At < sched.Hour {
			return ""
		}
	}
	return text
}

// stateChange is how the node came into another state than its past tells; empty:
// it did not.
func stateChange(old, n *state.Node, now sched.Time) string {
	word, reason := n.State()
	last := state.NodeChange{State: "up"}
	if len(n.Past) > 0 {
		last = n.Past[len(n.Past)-1]
	}
	heard := n.Said > 0 // in this start: before that it only seems to be there
	switch {
	case last.State == word && withoutFigures(last.Reason) == withoutFigures(reason):
		if word == "drained" && len(n.Jobs) == 0 && draining(n.Past) {
			return word
		}
		return ""
	case word == "suspect" || word == "lost":
		return fmt.Sprintf("%s: no contact for %s", word, job.Duration((now-n.LastSeen)/sched.Second))
	case heard && (last.State == "suspect" || last.State == "lost"):
		text := "back after " + job.Duration(max(now-last.At, now-old.LastSeen)/sched.Second).String()
		if word != "up" {
			text += ", " + word
		}
		return text
	case word == "drained" && len(n.Jobs) > 0:
		return textDraining
	case word == "drained":
		return word
	case last.State == "rebooting" && heard && word == "up":
		return "back after its reboot, and its checks have passed"
	case !heard:
		return ""
	case word != "up":
		return word
	case last.State == "drained":
		return "resumed"
	}
	return "fit for jobs again"
}

// textDraining is said of a node that is taken out while jobs are there; "drained" follows
// when they have left.
const textDraining = "draining"

// draining says whether it was said last that a node that is taken out has jobs.
func draining(past []state.NodeChange) bool {
	for _, c := range slices.Backward(past) {
		if c.Text == textDraining || c.Text == "drained" || c.State != "drained" {
			return c.Text == textDraining
		}
	}
	return false
}

// gpuChanges are the GPUs that are out of service now and were not, and the other
// way round.
func gpuChanges(old, n *state.Node) (out []string) {
	was := map[string]string{}
	for _, g := range old.Inventory.GPUs {
		was[g.UUID] = old.OutOfService(g)
	}
	for _, g := range n.Inventory.GPUs {
		before, known := was[g.UUID]
		switch is := n.OutOfService(g); {
		case is != "" && (!known || before == ""):
			out = append(out, fmt.Sprintf("GPU %d (%s) is out of service: %s", g.Index, g.UUID, is))
		case is == "" && before != "":
			out = append(out, fmt.Sprintf("GPU %d (%s) is in service again", g.Index, g.UUID))
		}
	}
	return out
}

// withoutFigures leaves out what changes all the time: a disk that is full is no
// a change at each per cent.
func withoutFigures(reason string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r == '.' {
			return -1
		}
		return r
	}, reason)
}
