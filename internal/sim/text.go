package sim

import (
	"fmt"
	"math"
	"strings"
)

// row is a figure of a report in words. Less says that a lower value is better.
type row struct {
	name string
	of   func(*Report) float64
	unit string
}

var rows = []row{
	{"jobs", func(r *Report) float64 { return float64(r.Jobs) }, ""},
	{"started", func(r *Report) float64 { return float64(r.Started) }, ""},
	{"wait, mean", func(r *Report) float64 { return r.AvgWait }, "s"},
	{"wait, median", func(r *Report) float64 { return r.P50Wait }, "s"},
	{"wait, 95 % below", func(r *Report) float64 { return r.P95Wait }, "s"},
	{"wait, longest", func(r *Report) float64 { return r.MaxWait }, "s"},
	{"bounded slowdown, mean", func(r *Report) float64 { return r.AvgSlowdown }, ""},
	{"utilization", func(r *Report) float64 { return 100 * r.Utilization }, "%"},
	{"makespan", func(r *Report) float64 { return r.Makespan }, "s"},
	{"GPUs held at the last submission", func(r *Report) float64 { return r.GPUAllocation }, "%"},
	{"GPUs free and of no use then", func(r *Report) float64 { return r.Fragmented }, "%"},
	{"fairness between users", func(r *Report) float64 { return r.Fairness }, ""},
	{"estimate wrong by, median", func(r *Report) float64 { return r.ETAErrorP50 }, "s"},
	{"estimate wrong by, 90 % below", func(r *Report) float64 { return r.ETAErrorP90 }, "s"},
	{"waiting jobs with an estimate", func(r *Report) float64 { return 100 * r.ETACoverage }, "%"},
	{"rounds", func(r *Report) float64 { return float64(r.Rounds) }, ""},
	{"round, median", func(r *Report) float64 { return r.RoundP50 }, "ms"},
	{"round, 99 % below", func(r *Report) float64 { return r.RoundP99 }, "ms"},
	{"whole replay", func(r *Report) float64 { return r.Wall }, "s"},
}

// Text is reports side by side, as a table; with two or more, the last column
// is the change from the second last to the last, and whose waits changed follows.
func Text(reports ...Report) string {
	table := [][]string{{""}}
	for _, r := range reports {
		table[0] = append(table[0], r.Policy)
	}
	if len(reports) > 1 {
		table[0] = append(table[0], "change")
	}
	for _, x := range rows {
		line := []string{x.name}
		all := 0.0
		for i := range reports {
			v := x.of(&reports[i])
			all += math.Abs(v)
			line = append(line, number(v, x.unit))
		}
		if all == 0 {
			continue
		}
		if n := len(reports); n > 1 {
			line = append(line, change(x.of(&reports[n-2]), x.of(&reports[n-1])))
		}
		table = append(table, line)
	}
	last := reports[len(reports)-1]
	return align(table) + groupText(last.Groups) + unstartedText(reports) + notes(reports)
}

func notes(reports []Report) string {
	var b strings.Builder
	seen := map[string]bool{}
	for _, r := range reports {
		for _, n := range r.Notes {
			if !seen[n] {
				fmt.Fprintf(&b, "note: %s\n", n)
			}
			seen[n] = true
		}
	}
	return b.String()
}

func number(v float64, unit string) string {
	var s string
	switch {
	case v == math.Trunc(v) && math.Abs(v) < 1e15:
		s = fmt.Sprintf("%.0f", v)
	case math.Abs(v) >= 1000:
		s = fmt.Sprintf("%.1f", v)
	default:
		s = fmt.Sprintf("%.4g", v)
	}
	if unit != "" {
		s += " " + unit
	}
	return s
}

func change(from, to float64) string {
	if from == 0 || from == to {
		return ""
	}
	return fmt.Sprintf("%+.1f %%", 100*(to-from)/from)
}

// align sets the first column left and the others right.
func align(table [][]string) string {
	var width []int
	for _, line := range table {
		for i, cell := range line {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], len(cell))
		}
	}
	var b strings.Builder
	for _, line := range table {
		fmt.Fprintf(&b, "%-*s", width[0], line[0])
		for i, cell := range line[1:] {
			fmt.Fprintf(&b, "  %*s", width[i+1], cell)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
