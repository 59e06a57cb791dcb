package cli

import (
	"cmp"
	"slices"
	"strings"

	"gbatch/internal/api"
)

// sortKeys are the columns that are ordered as numbers; the others are by their
// text.
var sortKeys = map[byte]func(v *view, j *api.Job) int64{
	'i': func(_ *view, j *api.Job) int64 { return int64(j.Number) },
	'A': func(_ *view, j *api.Job) int64 { return int64(j.Number) },
	'F': func(_ *view, j *api.Job) int64 { return int64(arrayNumber(j)) },
	'M': func(v *view, j *api.Job) int64 { return int64(ran(j, v.now)) },
	'l': func(_ *view, j *api.Job) int64 { return j.LimitS },
	'L': func(v *view, j *api.Job) int64 { return j.LimitS - int64(ran(j, v.now).Seconds()) },
	'D': func(_ *view, j *api.Job) int64 { return int64(len(j.Nodes)) },
	'C': func(_ *view, j *api.Job) int64 { return int64(j.CPUs) },
	'm': func(_ *view, j *api.Job) int64 { return j.MemBytes },
	'b': func(_ *view, j *api.Job) int64 { return int64(j.GPUs * 1000) },
	'S': func(_ *view, j *api.Job) int64 { return startOf(j).Unix() },
	'e': func(_ *view, j *api.Job) int64 { return endOf(j).Unix() },
	'V': func(_ *view, j *api.Job) int64 { return j.Submitted.Unix() },
	'P': func(_ *view, j *api.Job) int64 { return int64(j.Cluster) },
	'p': func(_ *view, j *api.Job) int64 { return priorityOf(j) },
	'Q': func(_ *view, j *api.Job) int64 { return priorityOf(j) },
	2:   func(_ *view, j *api.Job) int64 { return factorsOf(j).Age },
	3:   func(_ *view, j *api.Job) int64 { return factorsOf(j).FairShare },
	4:   func(_ *view, j *api.Job) int64 { return factorsOf(j).Size },
	5:   func(_ *view, j *api.Job) int64 { return factorsOf(j).QOS },
	6:   func(_ *view, j *api.Job) int64 { return factorsOf(j).User },
}

func factorsOf(j *api.Job) api.Priority {
	if j.Factors == nil {
		return api.Priority{}
	}
	return *j.Factors
}

// sorting is an order of jobs, the first column the most important.
type sorting []sortColumn

type sortColumn struct {
	col  *column[api.Job]
	down bool
}

// parseSort reads what --sort takes: columns by name or by Slurm's letter, with
// commas between them, and a minus before those that go down.
func parseSort(text string) (sorting, error) {
	if text == "" {
		return nil, nil
	}
	var out sorting
	for _, part := range strings.Split(text, ",") {
		name, down := strings.CutPrefix(strings.TrimSpace(part), "-")
		col := columns.named(strings.TrimPrefix(name, "+"))
		if col == nil {
			return nil, usageError("--sort: there is no column %q: use %s, with a minus for the largest first", name, columns.names())
		}
		out = append(out, sortColumn{col, down})
	}
	return out, nil
}

func (o sorting) needs(letters ...byte) bool {
	return slices.ContainsFunc(o, func(c sortColumn) bool { return slices.Contains(letters, c.col.letter) })
}

// sort orders a list and keeps the first limit jobs, 0 for all.
func (o sorting) sort(l *api.JobList, v *view, limit int) {
	if len(o) == 0 {
		return
	}
	slices.SortStableFunc(l.Jobs, func(x, y api.Job) int {
		for _, c := range o {
			n := c.compare(v, &x, &y)
			if c.down {
				n = -n
			}
			if n != 0 {
				return n
			}
		}
		return cmp.Compare(x.Number, y.Number)
	})
	if limit > 0 && len(l.Jobs) > limit {
		l.Jobs = l.Jobs[:limit]
	}
}

func (c sortColumn) compare(v *view, x, y *api.Job) int {
	if key := sortKeys[c.col.letter]; key != nil {
		return cmp.Compare(key(v, x), key(v, y))
	}
	return strings.Compare(string(c.col.cell(v, nil, x)), string(c.col.cell(v, nil, y)))
}
