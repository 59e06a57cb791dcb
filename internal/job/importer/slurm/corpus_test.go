package slurm

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
)

var rewrite = flag.Bool("rewrite-corpus", false, "write testdata/corpus-read.txt anew, to be read before it is kept")

// TestCorpus reads scripts that have the habits of those that people publish, and
// compares what each asks for with what Slurm would give it: on each node so many
// cores, memory and GPUs, the tasks that srun starts, time, array, files, and
// remarks. Of 100 that Slurm takes 95 are taken; it refuses those whose names begin
// with refused.
func TestCorpus(t *testing.T) {
	text, err := os.ReadFile("testdata/corpus.txt")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	taken, all := 0, 0
	for part := range strings.SplitSeq(strings.TrimPrefix(string(text), "-- "), "\n-- ") {
		name, script, _ := strings.Cut(part, " --\n")
		o := surroundings
		o.DefaultImage, o.Directory, o.FileName = "site/image:1", "/project/here", name
		sub, err := Parse([]byte(strings.ReplaceAll(script+"\n", "<CR>", "\r")), o)
		wrong := strings.HasPrefix(name, "refused")
		if !wrong {
			all++
		} else if err == nil {
			t.Errorf("%s is taken", name)
		}
		fmt.Fprintf(&got, "-- %s --\n", name)
		if problems, ok := errors.AsType[job.Problems](err); ok {
			for _, p := range problems {
				fmt.Fprintf(&got, "refused: line %d: %s %s; %s\n", p.Line, p.Path, p.Message, p.Hint)
			}
			continue
		}
		taken++
		got.WriteString(asked(sub))
	}
	if taken*100 < all*95 || all < 60 {
		t.Errorf("%d of %d scripts are taken", taken, all)
	}
	const file = "testdata/corpus-read.txt"
	if *rewrite {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// asked is a job in some lines.
func asked(sub job.Submission) string {
	var out strings.Builder
	s, r, g := &sub.Spec, &sub.Spec.Request.Resources, sub.Spec.Gbatch
	l := g.Launch
	fmt.Fprintf(&out, "%q on %d: %d cores, %d GiB, %g GPUs %v each; tasks %d, per node %d, cores each %d, GPUs each %d", s.Name, max(g.Nodes, 1), r.CPUs, r.CPUMemoryGB, r.GPUs, r.GPUModel, l.Tasks, l.PerNode, l.CPUsPerTask, l.GPUsPerTask)
	for _, x := range []struct {
		is   bool
		text string
	}{{g.Exclusive, "exclusive"}, {g.AllMemory, "all memory"}, {s.Request.Scheduling.Restartable, "restartable"}} {
		if x.is {
			out.WriteString(", " + x.text)
		}
	}
	out.WriteByte('\n')
	add := func(name string, v any) {
		if text := fmt.Sprint(v); text != "" && text != "0" && text != "[]" && text != "<nil>" && text != "map[]" {
			fmt.Fprintf(&out, "  %s: %s\n", name, text)
		}
	}
	add("image", strings.Replace(s.Request.Docker.Image, "docker.io/site/image:1", "", 1))
	add("time", s.Request.Scheduling.MaxDuration)
	add("not after", s.Request.Scheduling.NotAfter)
	if g.WarnSignal != "" {
		add("warning", fmt.Sprint(g.WarnSignal, " ", g.WarnBefore))
	}
	add("features", r.Features)
	add("any of", g.AnyFeatures)
	if g.Tasks != nil {
		add("array", fmt.Sprintf("%v, %d at a time", g.Tasks.Indexes, g.Tasks.Parallelism))
	}
	for _, d := range g.Dependencies {
		add("after", fmt.Sprint(d.Type, " ", d.Jobs))
	}
	add("files", fmt.Sprintf("output %q, errors %q, append %t", g.Stdio.Output, g.Stdio.Error, g.Stdio.Append))
	add("directory", s.Request.Docker.WorkingDir)
	add("variables", s.Request.Docker.Environment)
	for _, m := range s.Request.Docker.Storage {
		add("mount", fmt.Sprintf("%s at %s, read-only %t", m.HostPath, m.ContainerPath, m.ReadOnly))
	}
	for _, n := range sub.Notes {
		fmt.Fprintf(&out, "  note: %s: %s\n", n.Path, n.Message)
	}
	return out.String()
}
