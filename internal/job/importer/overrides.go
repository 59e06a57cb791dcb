package importer

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"strconv"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/slurm"
	"gbatch/oci/ref"
)

// Overrides are what flags say in place of a job file, or instead of one. Zero
// values leave the file's. Texts are as Slurm has them.
type Overrides struct {
	Name      string
	Image     string
	Command   []string // with Image: a job without a file
	GPUs      string   // N, MODEL:N, a share such as 0.5, or all
	CPUs      int
	Mem       string // 16G, 512M
	Time      string // minutes, H:M:S, D-H:M:S, or "2 hours"
	Nodes     int
	Cluster   int
	NodeList  string // n[1-3]
	Exclude   string
	Array     string // 0-99%8
	Retry     int
	QOS       string
	Env       []string // NAME=VALUE, or NAME for one of whoever submits
	Mount     []string // SOURCE[:TARGET[:ro]]
	Workdir   string
	Exclusive bool
	Requeue   bool
}

// Any says whether anything is overridden.
func (o Overrides) Any() bool {
	return o.Name != "" || o.Image != "" || len(o.Command) > 0 || o.GPUs != "" || o.CPUs > 0 || o.Mem != "" || o.Time != "" || o.Nodes > 0 ||
		o.Cluster > 0 || o.NodeList != "" || o.Exclude != "" || o.Array != "" || o.Retry > 0 || o.QOS != "" || len(o.Env) > 0 || len(o.Mount) > 0 ||
		o.Workdir != "" || o.Exclusive || o.Requeue
}

// quickMemoryPerCore is what a job without a file gets that asks for no memory, GiB.
const quickMemoryPerCore = 4

// Quick is the job that flags alone describe, before they are applied.
func (o Overrides) Quick() (job.Submission, error) {
	if o.Image == "" {
		return job.Submission{}, job.Problems{{Path: "--image", Message: "is missing: a job runs in a container", Hint: "gsubmit --image NAME -- COMMAND"}}
	}
	cores := max(o.CPUs, 1)
	return job.Submission{Spec: job.Spec{
		Name:    path.Base(o.Command[0]),
		Request: job.Request{Resources: job.Resources{CPUs: cores, CPUMemoryGB: quickMemoryPerCore * cores}},
	}}, nil
}

// Apply puts what is overridden into a job and checks it again. Problems have
// the flags as their path.
func (o Overrides) Apply(sub job.Submission, surroundings Options) (job.Submission, error) {
	g := job.Gbatch{}
	if sub.Spec.Gbatch != nil {
		g = *sub.Spec.Gbatch
	}
	sub.Spec.Gbatch = &g
	a := &applied{sub: &sub, o: surroundings}
	a.amounts(o)
	a.container(o)
	a.when(o)
	if len(a.problems) > 0 {
		return job.Submission{}, a.problems
	}
	doc, err := sub.Document()
	if err != nil {
		return job.Submission{}, err
	}
	out, err := job.Parse(doc)
	if ps, ok := errors.AsType[job.Problems](err); ok {
		for i := range ps {
			ps[i].Line = 0
		}
		return job.Submission{}, ps
	}
	out.Notes = append(sub.Notes, out.Notes...)
	return out, err
}

// applied is a job to which overrides are being applied.
type applied struct {
	sub      *job.Submission
	o        Options
	problems job.Problems
}

func (a *applied) check(flag, value string, err error) bool {
	if err != nil {
		a.problems = append(a.problems, job.Problem{Path: flag, Message: fmt.Sprintf("is %s: %v", document.Quote(value), err)})
	}
	return err == nil
}

func (a *applied) amounts(o Overrides) {
	r, g := &a.sub.Spec.Request.Resources, a.sub.Spec.Gbatch
	if o.CPUs > 0 {
		r.CPUs = o.CPUs
	}
	if o.Mem != "" {
		mib, err := slurm.Memory(o.Mem)
		if a.check("--mem", o.Mem, err) {
			r.CPUMemoryGB = slurm.GiB(mib)
		}
	}
	if o.GPUs != "" {
		count, model, err := quickGPUs(o.GPUs)
		if a.check("--gpus", o.GPUs, err) {
			if r.GPUs = count; model != "" {
				r.GPUModel = []string{model}
			}
		}
	}
	if o.Nodes > 0 {
		g.Nodes = o.Nodes
	}
	if o.Cluster > 0 {
		r.ClusterID = o.Cluster
	}
	g.Exclusive = g.Exclusive || o.Exclusive
	for _, list := range []struct {
		flag, text string
		to         *[]string
	}{{"--nodelist", o.NodeList, &g.NodeNames}, {"--exclude", o.Exclude, &g.ExcludeNodes}} {
		if list.text != "" {
			names, err := job.ParseNodes(list.text)
			a.check(list.flag, list.text, err)
			*list.to = names
		}
	}
}

// quickGPUs reads all, a share below 1, N or MODEL[:N].
func quickGPUs(s string) (count float64, model string, err error) {
	if s == "all" || s == "-1" {
		return -1, "", nil
	}
	if x, err := strconv.ParseFloat(s, 64); err == nil {
		return x, "", nil // checked with the document
	}
	g, err := slurm.ParseGPUs(s)
	return float64(g.Count), g.Model, err
}

func (a *applied) container(o Overrides) {
	docker := &a.sub.Spec.Request.Docker
	if o.Name != "" {
		a.sub.Spec.Name = o.Name
	}
	if o.Image != "" {
		r, creds, err := ref.Parse(slurm.Image(o.Image))
		if err != nil {
			a.problems = append(a.problems, job.Problem{Path: "--image", Message: "is no image reference", Hint: "write " + ref.Forms})
		} else {
			docker.Image, a.sub.Registry = r.String(), creds
			a.sub.Spec.Gbatch.ImageAlias = ""
		}
	}
	if len(o.Command) > 0 {
		docker.Command = job.Command{Argv: o.Command}
	}
	if o.Workdir != "" {
		docker.WorkingDir = o.Workdir
	}
	env := map[string]string{}
	maps.Copy(env, docker.Environment)
	for _, text := range o.Env {
		name, value, given := strings.Cut(text, "=")
		if !given && a.o.Env != nil {
			value, given = a.o.Env(name)
		}
		if !given {
			a.check("--env", name, errors.New("is not set where the job is submitted"))
		}
		env[name] = value
	}
	if len(env) > 0 {
		docker.Environment = env
	}
	for _, text := range o.Mount {
		mounts, err := slurm.Mounts(text)
		if a.check("--mount", text, err) {
			docker.Storage = append(docker.Storage, mounts...)
		}
	}
}

func (a *applied) when(o Overrides) {
	sc, g := &a.sub.Spec.Request.Scheduling, a.sub.Spec.Gbatch
	if o.Time != "" {
		d, limited, err := slurm.Time(o.Time)
		if native, err2 := job.ParseDuration(o.Time); err != nil && err2 == nil {
			d, limited, err = native, true, nil
		}
		if a.check("--time", o.Time, err) {
			if sc.MaxDuration = d; !limited {
				sc.MaxDuration = 0
			}
		}
	}
	if o.Array != "" {
		set, most, err := job.ParseArray(o.Array)
		if a.check("--array", o.Array, err) {
			g.Tasks = &job.Tasks{Indexes: set.String(), Parallelism: most}
		}
	}
	if o.Retry > 0 {
		g.Retry = &job.Retry{Limit: o.Retry}
	}
	if o.QOS != "" {
		g.QOS = o.QOS
	}
	sc.Restartable = sc.Restartable || o.Requeue
}
