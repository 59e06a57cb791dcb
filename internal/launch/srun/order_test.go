package srun

import (
	"slices"
	"strings"
	"testing"

	"gbatch/internal/launch"
)

// TestExport: --export's words for all and for none are read in any case, as Slurm does.
func TestExport(t *testing.T) {
	t.Setenv("OF_THE_SCRIPT", "1")
	for export, all := range map[string]bool{"": true, "ALL": true, "all": true, "All,A=1": true, "NONE": false, "none": false, "Nil": false, "A=1": false} {
		env, own := (&run{o: &options{export: export}}).environment()
		if got := slices.Contains(env, "OF_THE_SCRIPT=1"); got != all || own == all {
			t.Errorf("--export=%s: the script's variables %t, want %t; its own environment %t", export, got, all, own)
		}
	}
}

// TestExportNames: which of the script's variables tasks have is what Slurm 22.05 gave
// them, but that a value given beside ALL counts: there the script's own wins.
func TestExportNames(t *testing.T) {
	t.Setenv("MINE", "1")
	t.Setenv("SLURM_FOO", "3")
	for export, want := range map[string]string{
		"MINE": "MINE=1", "MINE=9": "MINE=9", "NONE,MINE": "", "nil,NEW=8": "", "NEW=8,NONE": "NEW=8", "MINE,NONE": "MINE=1", "ABSENT": "", "NEW=8,MINE": "NEW=8 MINE=1",
	} {
		env, own := (&run{o: &options{export: export}}).environment()
		var got []string
		for _, kv := range env {
			if kv != "SLURM_FOO=3" && !strings.HasPrefix(kv, "SLURM_") {
				got = append(got, kv)
			}
		}
		if strings.Join(got, " ") != want || !own || !slices.Contains(env, "SLURM_FOO=3") {
			t.Errorf("--export=%s: %q, own %t; want %q", export, env, own, want)
		}
	}
}

// TestTasksThatFit: srun -c without a number of tasks starts as many as the cores
// of its nodes allow, as with Slurm.
func TestTasksThatFit(t *testing.T) {
	eight := launch.Node{CPUs: 8}
	for name, tc := range map[string]struct {
		info *launch.Info
		args []string
		want int // tasks; 0: one on each node
	}{
		"whole":              {&launch.Info{Nodes: []launch.Node{eight}}, []string{"-c", "4"}, 2},
		"rounded down":       {&launch.Info{Nodes: []launch.Node{eight}}, []string{"-c3"}, 2},
		"of all nodes":       {&launch.Info{Nodes: []launch.Node{eight, {CPUs: 4}}}, []string{"-c", "2"}, 6},
		"of those asked for": {&launch.Info{Nodes: []launch.Node{eight, eight}}, []string{"-N1", "-c", "2"}, 4},
		"too many cores":     {&launch.Info{Nodes: []launch.Node{eight}}, []string{"-c", "16"}, 0},
		"not asked for":      {&launch.Info{Nodes: []launch.Node{eight}, CPUsPerTask: 4}, nil, 0},
		"number of tasks":    {&launch.Info{Nodes: []launch.Node{eight}}, []string{"-n", "1", "-c", "2"}, 1},
		"number of the job":  {&launch.Info{Nodes: []launch.Node{eight}, Tasks: 3}, []string{"-c", "2"}, 3},
		"of each node":       {&launch.Info{Nodes: []launch.Node{eight}, PerNode: 2}, []string{"-c", "2"}, 0},
		"terminal":           {&launch.Info{Nodes: []launch.Node{eight}}, []string{"--pty", "-c", "2"}, 1},
	} {
		o, err := parse(append(tc.args, "true"), func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		if err := (&run{info: tc.info, o: o}).prepare(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if o.q.Tasks != tc.want {
			t.Errorf("%s: %d tasks, want %d", name, o.q.Tasks, tc.want)
		}
	}
}
