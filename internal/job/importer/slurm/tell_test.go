package slurm

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestVariablesOfOptions: what stands for an option is set when Slurm sets it, and has the
// value that Slurm 22.05 gives it.
func TestVariablesOfOptions(t *testing.T) {
	for options, want := range map[string]string{
		"":                              "",
		"-n 4 -c 2":                     "", // of the job's own
		"-G 2":                          "SLURM_GPUS=2",
		"--gpus=a100:2":                 "SLURM_GPUS=a100:2",
		"--gpus-per-node=2":             "SLURM_GPUS_PER_NODE=2",
		"--gres=gpu:a100:2":             "",
		"-n 4 --gpus-per-task=a100:1":   "SLURM_GPUS_PER_TASK=a100:1",
		"--mem-per-cpu=1G":              "SLURM_MEM_PER_CPU=1024",
		"--mem-per-cpu=0":               "",
		"--mem-per-gpu=50 -G 2":         "SLURM_GPUS=2 SLURM_MEM_PER_GPU=50",
		"--mem-per-gpu=0 -G 1":          "SLURM_GPUS=1 SLURM_MEM_PER_GPU=0",
		"-G 2 --ntasks-per-gpu=1":       "SLURM_GPUS=2 SLURM_NTASKS_PER_GPU=1",
		"--gres=gpu:2 --cpus-per-gpu=2": "SLURM_CPUS_PER_GPU=2",
		"-m cyclic:block":               "SLURM_DISTRIBUTION=cyclic:block",
		"-m block:cyclic,Pack":          "SLURM_DISTRIBUTION=block:cyclic,pack",
		"-m *:block":                    "SLURM_DISTRIBUTION=block:block",
		"--distribution=plane=2":        "SLURM_DISTRIBUTION=plane SLURM_DIST_PLANESIZE=2",
		"--hint=nomultithread":          "SLURM_HINT=nomultithread SLURM_THREADS_PER_CORE=1",
		"--hint=multithread":            "SLURM_HINT=multithread SLURM_NTASKS_PER_CORE=65535",
		"--threads-per-core=1":          "SLURM_THREADS_PER_CORE=1",
		"--ntasks-per-core=1":           "SLURM_NTASKS_PER_CORE=1",
		"--export=NONE":                 "SLURM_EXPORT_ENV=NONE SLURM_GET_USER_ENV=1",
		"--export=ALL":                  "",
		"--export=ALL,A=1":              "A=1 SLURM_EXPORT_ENV=ALL,A=1 SLURM_GET_USER_ENV=1",
		"--get-user-env":                "SLURM_GET_USER_ENV=1",
		"--mem-bind=verbose,local":      "SLURM_MEM_BIND=verbose,local SLURM_MEM_BIND_VERBOSE=verbose",
		"--gpu-bind=closest -G 1":       "SLURM_GPUS=1 SLURM_GPU_BIND=closest",
		"-O -n 4":                       "SLURM_OVERCOMMIT=1",
		"--open-mode=append":            "SLURM_OPEN_MODE=a",
		"--profile=all":                 "SLURM_PROFILE=Energy,Lustre,Network,Task",
		"-p gpu":                        "",
		"-p 2":                          "",
		"--export=SLURM_HINT=mine --hint=compute_bound": "SLURM_EXPORT_ENV=SLURM_HINT=mine SLURM_GET_USER_ENV=1 SLURM_HINT=mine SLURM_THREADS_PER_CORE=1",
	} {
		sub, err := Parse(fmt.Appendf(nil, "#!/bin/sh\n#SBATCH --image=a %s\ntrue\n", options), surroundings)
		if err != nil {
			t.Errorf("%s: %v", options, err)
			continue
		}
		var got []string
		for _, name := range slices.Sorted(maps.Keys(sub.Spec.Request.Docker.Environment)) {
			got = append(got, name+"="+sub.Spec.Request.Docker.Environment[name])
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", options, diff)
		}
	}
	for _, options := range []string{"--hint=x", "-m x", "-m plane=x", "-m arbitrary", "--profile=x"} {
		if _, err := Parse(fmt.Appendf(nil, "#!/bin/sh\n#SBATCH --image=a %s\n", options), surroundings); err == nil {
			t.Errorf("%s was accepted", options)
		}
	}
}

// TestConstraint: expressions are read from left to right, as Slurm does; those
// with a comment were tried there.
func TestConstraint(t *testing.T) {
	for v, want := range map[string]string{
		"ib":                     "ib",
		"ib&big":                 "ib & big",
		"ib,big":                 "ib & big",
		"ib|big":                 "big or ib",
		"ib&none|none2":          "ib or none2 & none or none2", // runs where none2 is
		"big|ib&none":            "big or ib & none",
		"(ib|none)&big":          "ib or none & big",
		"(none&none2)|(ib&big)":  "ib or none & big or none & ib or none2 & big or none2",
		"ib|(none&none2)":        "ib or none & ib or none2",
		"[ib|none]":              "ib or none",
		"[none|none2]&ib":        "none or none2 & ib",
		"ib|ib":                  "ib",
		"[none&none2|ib]":        "error", // refused there
		"ib*2&big*1":             "error",
		"(ib":                    "error",
		"ib)":                    "error",
		"ib&":                    "error",
		"|ib":                    "error",
		"":                       "error",
		"x":                      "error",
		strings.Repeat("((", 10): "error",
		strings.Repeat("(a1&a2&a3&a4)|", 8) + "bb": "error",
	} {
		s := newScript(Options{})
		got := "error"
		if err := s.constraint(v); err == nil {
			var parts []string
			for _, any := range s.features {
				parts = append(parts, strings.Join(any, " or "))
			}
			got = strings.Join(parts, " & ")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", v, diff)
		}
	}
	if _, err := Parse([]byte("#!/bin/sh\n#SBATCH --image=a -N 2 -C [aa|bb]\n"), surroundings); err == nil {
		t.Error("several nodes of one kind were accepted")
	}
}

// TestLineWins: an option of the command line takes the place of the script's,
// also where it says the same in another way.
func TestLineWins(t *testing.T) {
	o := surroundings
	o.Line = []string{"--mem=3G", "-G", "2", "-C", "line", "-p", "3"}
	sub, err := Parse([]byte("#!/bin/sh\n#SBATCH --image=a --mem-per-cpu=1G --gres=gpu:h100:1 -C script -p gpu\n"), o)
	if err != nil {
		t.Fatal(err)
	}
	r := sub.Spec.Request.Resources
	if r.CPUMemoryGB != 3 || r.GPUs != 2 || r.GPUModel != nil || r.ClusterID != 3 || len(r.Features) != 1 || r.Features[0] != "line" || sub.Spec.Gbatch.AnyFeatures != nil {
		t.Errorf("it asks for %+v, %v", r, sub.Spec.Gbatch.AnyFeatures)
	}
}
