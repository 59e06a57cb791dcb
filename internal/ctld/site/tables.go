package site

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/oci/ref"
)

// InstanceType is what a name of instanceTypes stands for. What a job says itself
// wins over it.
type InstanceType struct {
	GPUs        float64  `yaml:"gpus"`
	GPUModel    []string `yaml:"gpuModel"`
	GPUMemoryGB int      `yaml:"gpuMemoryGb"`
	CPUs        int      `yaml:"cpus"`
	CPUMemoryGB int      `yaml:"cpuMemoryGb"`
}

func (c Config) checkTables(bad func(path, format string, a ...any)) {
	for _, name := range slices.Sorted(maps.Keys(c.InstanceTypes)) {
		t, at := c.InstanceTypes[name], "instanceTypes."+name
		if t.CPUs < 1 || t.CPUMemoryGB < 1 {
			bad(at, "needs cpus and cpuMemoryGb, both 1 or more")
		}
		if g := t.GPUs; g != -1 && (g < 0 || g > 1 && g != float64(int(g))) {
			bad(at+".gpus", "%v: want -1 (all of a node), 0, a share of one, or whole ones", g)
		}
	}
	c.Batch.check(bad)
	if r := c.Results; r != "" && !strings.HasPrefix(r, "s3://") && !strings.HasPrefix(r, "file:///") {
		bad("results", "%q: want s3://BUCKET/PREFIX or file:///PATH", r)
	}
	for _, name := range slices.Sorted(maps.Keys(c.ImageAliases)) {
		_, login, err := ref.Parse(c.ImageAliases[name])
		switch {
		case err != nil:
			bad("imageAliases."+name, "%v", err)
		case login != nil:
			bad("imageAliases."+name, "must not have a password: every user could have it")
		}
	}
}

// ResolveTables puts in what the site's tables say, so that the document that is
// stored is whole.
func (c Config) ResolveTables(spec *job.Spec) error {
	g := spec.Gbatch
	if g == nil {
		return nil
	}
	c.resolveMemory(spec)
	var problems []api.Problem
	if g.InstanceType != "" {
		if t, ok := c.InstanceTypes[g.InstanceType]; ok {
			t.apply(&spec.Request.Resources)
			if wrong := spec.ShmProblem(); wrong != "" {
				problems = append(problems, api.Problem{Path: "gbatch.shmSizeMb", Message: wrong})
			}
		} else if r := &spec.Request.Resources; g.Source != "" && r.GPUs > 0 && len(r.GPUModel) > 0 {
			// GPU.H100_8x says by itself what it is: eight of them, and what comes with them.
			r.CPUs, r.CPUMemoryGB, g.ShareOfNode = max(r.CPUs, 1), max(r.CPUMemoryGB, 1), true
		} else {
			p := unknownName("gbatch.instanceType", "instance type", g.InstanceType, c.InstanceTypes)
			p.Hint += "; the table instanceTypes in gctld.yaml says which cores, memory and GPUs a name stands for, and a task's name that ends in _8x needs no entry"
			problems = append(problems, p)
		}
	}
	if g.ImageAlias != "" {
		if image, ok := c.ImageAliases[g.ImageAlias]; ok {
			spec.Request.Docker.Image, g.ImageAlias = image, ""
		} else if g.ImageAlias == batchImage {
			problems = append(problems, api.Problem{Path: "request.docker.image", Message: "the script names no container image, and this site has none for scripts",
				Hint: "submit it with --image NAME, write #SBATCH --container-image=NAME into it, or set GBATCH_SLURM_IMAGE for sbatch"})
		} else {
			problems = append(problems, unknownName("gbatch.imageAlias", "image", g.ImageAlias, c.ImageAliases))
		}
	}
	for i, o := range g.Outputs {
		rest, ok := strings.CutPrefix(o.URI, "results:///")
		switch {
		case !ok:
		case c.Results == "":
			problems = append(problems, api.Problem{Path: fmt.Sprintf("gbatch.outputs[%d].uri", i), Message: "this site has no place for results",
				Hint: "write s3://BUCKET/PREFIX/ or file:///PATH in the site's storage, or ask your operator to set \"results\""})
		default:
			g.Outputs[i].URI = strings.TrimSuffix(c.Results, "/") + "/" + rest
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return api.Errorf(api.CodeInvalidJob, "the job cannot be taken here").WithProblems(problems...)
}

func (t InstanceType) apply(r *job.Resources) {
	if r.GPUs == 0 {
		r.GPUs = t.GPUs
	}
	if r.CPUs == 0 {
		r.CPUs = t.CPUs
	}
	if r.CPUMemoryGB == 0 {
		r.CPUMemoryGB = t.CPUMemoryGB
	}
	if len(r.GPUModel) == 0 {
		r.GPUModel = slices.Clone(t.GPUModel)
	}
	if r.GPUMemoryGB == 0 {
		r.GPUMemoryGB = t.GPUMemoryGB
	}
}

func unknownName[V any](path, what, name string, known map[string]V) api.Problem {
	p := api.Problem{Path: path, Message: fmt.Sprintf("this site has no %s %q", what, name), Hint: "it has " + strings.Join(slices.Sorted(maps.Keys(known)), ", ")}
	if len(known) == 0 {
		p.Hint = "it has none: say what the job needs itself, or ask your operator"
	}
	return p
}
