package slurm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/cli/slurm/getopt"
	"gbatch/internal/cli/table"
)

// infoView is how sinfo was asked to list.
type infoView struct {
	parts, nodes, states                                            []string
	clusters                                                        clusters
	format, long, order                                             string
	noHeader, each, wide, summary, reasons, json, silent, answering bool
}

func (q *infoView) options() []getopt.Option {
	return []getopt.Option{
		getopt.List(&q.parts, "-p", "--partition").From("SINFO_PARTITION"), getopt.List(&q.nodes, "-n", "--nodes"), getopt.List(&q.states, "-t", "--states"),
		q.clusters.option().From("SLURM_CLUSTERS"), getopt.String(&q.format, "-o", "--format").From("SINFO_FORMAT"), getopt.String(&q.long, "-O", "--Format").From("SINFO_FORMAT2"),
		getopt.String(&q.order, "-S", "--sort").From("SINFO_SORT"), getopt.Bool(&q.noHeader, "-h", "--noheader"), getopt.Bool(&q.each, "-N", "--Node"), getopt.Bool(&q.wide, "-l", "--long"),
		getopt.Bool(&q.summary, "-s", "--summarize"), getopt.Bool(&q.reasons, "-R", "--list-reasons"), getopt.Bool(&q.json, "--json"), getopt.Bool(&q.silent, "-d", "--dead"), getopt.Bool(&q.answering, "-r", "--responding"),
		getopt.Ignored("-a", "--all", "-e", "--exact", "--hide", "-v", "--verbose", "--local", "--federation", "--noconvert").From("SINFO_ALL"),
		getopt.Instead("use --json", "--yaml"), getopt.Instead("use watch -n SECONDS sinfo ...", "-i", "--iterate"), getopt.Instead("use gadm reservations", "-T", "--reservation"),
	}
}

// layout is what is printed of the nodes. Names of nodes are shown whole.
func (q *infoView) layout(longest int) (table.Layout[nodeRow], error) {
	switch {
	case q.format != "":
		return sinfoColumns.Format(q.format)
	case q.long != "":
		return sinfoColumns.Long(q.long)
	case q.reasons && q.wide:
		return sinfoColumns.Format("%20E %12U %19H %6t %N")
	case q.reasons:
		return sinfoColumns.Format("%20E %9u %19H %N")
	case q.summary:
		return sinfoColumns.Format("%9P %.5a %.10l %.16F %N")
	case q.each && q.wide:
		return sinfoColumns.Format(fmt.Sprintf("%%%dN %%.6D %%.9P %%.11T %%4c %%.8z %%.6m %%.8d %%.6w %%.8f %%20E", longest))
	case q.each:
		return sinfoColumns.Format(fmt.Sprintf("%%%dN %%.6D %%.9P %%6t", longest))
	case q.wide:
		return sinfoColumns.Format("%9P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N")
	}
	return sinfoColumns.Format("%9P %.5a %.10l %.6D %.6t %N")
}

// sinfo lists partitions and nodes.
func sinfo(ctx context.Context, a *cli.App, args []string) error {
	var q infoView
	rest, err := getopt.ParseWith(a.Env, args, q.options())
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return exit.Usagef("%q is no option", rest[0])
	}
	if err := q.clusters.check(); err != nil {
		return err
	}
	if err := q.stateWords(); err != nil {
		return err
	}
	if _, err := q.layout(10); err != nil { // before anybody is asked
		return err
	}
	order, err := sinfoColumns.Order(cmp.Or(q.order, pick(q.each, "N", "P,T")))
	if err != nil {
		return err
	}
	list, err := q.selected(ctx, a)
	if err != nil {
		return err
	}
	if q.json {
		return writeJSON(a, "nodes", nodesOf(list), nodeJSON)
	}
	longest := 9
	for _, r := range list {
		longest = max(longest, len(r.nodes[0].Name))
	}
	form, err := q.layout(longest)
	if err != nil {
		return err
	}
	view := table.View{Now: a.Now(), NoHeader: q.noHeader}
	rows := q.lines(list, form, &view)
	order.Sort(rows, view)
	q.clusters.heading(a, q.noHeader)
	if q.wide && !q.noHeader {
		fmt.Fprintln(a.Out, a.Now().Local().Format(time.ANSIC))
	}
	return form.Write(a.Out, rows, view)
}

// selected are the nodes that were asked for, of each of the partitions once.
func (q *infoView) selected(ctx context.Context, a *cli.App) (out []nodeRow, err error) {
	names, err := jobs.ParseNodes(q.nodes)
	if err != nil {
		return nil, err
	}
	parts, info, err := partitionList(ctx, a)
	if err != nil {
		return nil, err
	}
	for i := range parts {
		if len(q.parts) > 0 && !slices.Contains(q.parts, parts[i].Name) {
			continue
		}
		for _, n := range info.Nodes {
			silent := strings.HasSuffix(nodeState(&n), "*")
			switch {
			case !slices.Contains(parts[i].Nodes, n.Name), len(names) > 0 && !slices.Contains(names, n.Name):
			case len(q.states) > 0 && !slices.ContainsFunc(q.states, func(w string) bool { return inState(&n, w) }):
			case q.silent && !silent, q.answering && silent, q.reasons && n.Reason == "":
			default:
				out = append(out, nodeRow{&parts[i], []api.Node{n}})
			}
		}
	}
	return out, nil
}

// stateWords writes the words of -t out: Slurm takes the first state that begins with
// one. A word of which there is none is an error, not a list without nodes.
func (q *infoView) stateWords() error {
	for i, joined := range q.states {
		words := strings.Split(joined, "&")
		for k, w := range words {
			at := slices.IndexFunc(nodeStates, func(s string) bool { return strings.HasPrefix(s, strings.ToLower(w)) })
			if at < 0 {
				return &exit.Error{Code: exit.Failure, Err: fmt.Errorf("error: Bad state string: %q; valid states: %s", w, strings.Join(nodeStates, ","))}
			}
			words[k] = nodeStates[at]
		}
		q.states[i] = strings.Join(words, "&")
	}
	return nil
}

// inState says whether a word of -t, of which several may be joined by &, is
// meant for a node.
func inState(n *api.Node, words string) bool {
	state := strings.TrimSuffix(nodeState(n), "*")
	for w := range strings.SplitSeq(words, "&") {
		is := w == "all" || w == state || w == shortNodeStates[state] ||
			w == "drain" && (state == "draining" || state == "drained") ||
			w == "no_respond" && strings.HasSuffix(nodeState(n), "*") || (state == "draining" || state == "drained") && w == baseState(n)
		if !is {
			return false
		}
	}
	return true
}

// lines puts nodes that are shown alike on one line.
func (q *infoView) lines(list []nodeRow, form table.Layout[nodeRow], v *table.View) (rows []nodeRow) {
	where := map[string]int{}
	for _, one := range list {
		key := ""
		for _, name := range tellsApart {
			if form.Shows(name) {
				key += string(sinfoColumns.Named(name).Cell(v, nil, &one)) + "\x00"
			}
		}
		if i, ok := where[key]; ok && !q.each {
			if !slices.ContainsFunc(rows[i].nodes, func(n api.Node) bool { return n.Name == one.nodes[0].Name }) {
				rows[i].nodes = append(rows[i].nodes, one.nodes...)
			}
			continue
		}
		where[key] = len(rows)
		rows = append(rows, one)
	}
	return rows
}

// nodesOf are the nodes of the lines, each once.
func nodesOf(list []nodeRow) (nodes []api.Node) {
	for _, r := range list {
		for _, n := range r.nodes {
			if !slices.ContainsFunc(nodes, func(o api.Node) bool { return o.Name == n.Name }) {
				nodes = append(nodes, n)
			}
		}
	}
	return nodes
}
