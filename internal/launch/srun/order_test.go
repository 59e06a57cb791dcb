package srun

import (
	"slices"
	"testing"
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
