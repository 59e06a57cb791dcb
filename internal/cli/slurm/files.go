package slurm

import (
	"gbatch/internal/cli/table"
	"gbatch/internal/job"
)

// files are where a job's script reads and writes, in the container, which is where
// its user finds them too. What goes to no file is in the log alone.
func (r *row) files() (output, errors, input string) {
	const nowhere = "/dev/null"
	output, errors, input = nowhere, nowhere, nowhere
	if r.spec == nil {
		return output, errors, input
	}
	in := job.EnvInput{Spec: r.spec, ID: job.RankID{Job: r.Number}, User: r.User}
	if r.Parent > 0 && r.Task != nil {
		in.Array = &job.ArrayTask{Parent: r.Parent, Index: *r.Task}
	}
	if len(r.Nodes) > 0 {
		in.Node = r.Nodes[0]
	}
	o, e, i := job.StdioFiles(in)
	if o.Reached() {
		output = o.Path
	}
	if errors = output; e.Path != "" {
		errors = pick(e.Reached(), e.Path, nowhere)
	}
	if i.Reached() {
		input = i.Path
	}
	return output, errors, input
}

func rowStdOut(_ *table.View, r *row) string { output, _, _ := r.files(); return output }
func rowStdErr(_ *table.View, r *row) string { _, errors, _ := r.files(); return errors }
func rowStdIn(_ *table.View, r *row) string  { _, _, input := r.files(); return input }
