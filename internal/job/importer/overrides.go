package importer

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/slurm"
	"gbatch/internal/job/indexes"
	"gbatch/internal/job/nodelist"
	"gbatch/internal/job/sizes"
	"gbatch/internal/job/times"
	"gbatch/oci/ref"
)

// Overrides are what flags say in place of a job file, or instead of one. Zero
// values leave the file's. Texts are as Slurm has them. The tags are the flags'
// for whoever reads a command line by them.
type Overrides struct {
	Name      string   `group:"job" name:"job-name" short:"J" aliases:"name" placeholder:"NAME" help:"Name."`
	Image     string   `group:"job" placeholder:"NAME" help:"Container image."`
	GPUs      string   `group:"job" name:"gpus" short:"G" placeholder:"N" help:"GPUs of each node: a number, MODEL:NUMBER, a share such as 0.5, or all."`
	CPUs      int      `group:"job" name:"cpus" short:"c" aliases:"cpus-per-task" placeholder:"N" help:"Cores of each node."`
	Mem       string   `group:"job" aliases:"memory" placeholder:"SIZE" help:"Memory of each node, as 16G (else 4 GiB for each core); 0 is all of it."`
	Time      string   `group:"job" short:"t" placeholder:"TIME" help:"Time limit: minutes, H:M:S, D-H:M:S or \"2 hours\"."`
	Nodes     int      `group:"job" short:"N" placeholder:"N" help:"Nodes; all start together."`
	Cluster   string   `group:"job" short:"p" aliases:"partition" placeholder:"NAMES" help:"Partition, or several of which one will do; or a cluster's number."`
	NodeList  string   `group:"job" name:"nodelist" short:"w" placeholder:"NODES" help:"Only these nodes, as n[1-3],m1."`
	Exclude   string   `group:"job" short:"x" placeholder:"NODES" help:"None of these nodes."`
	Exclusive bool     `group:"job" help:"Nodes without any other job, and all cores, memory and GPUs of theirs."`
	Array     string   `group:"job" short:"a" placeholder:"INDEXES" help:"Run it once for each index: 0-99, 1,5,7-20:2, or 0-99%8 for at most 8 at once."`
	Retry     int      `group:"job" placeholder:"N" help:"Try again so many times what failed."`
	Requeue   bool     `group:"job" help:"Queue it again when it is halted or its node fails."`
	QOS       string   `group:"job" name:"qos" short:"q" placeholder:"NAME" help:"Service class."`
	Notify    []string `group:"job" sep:"none" placeholder:"[ON:]ADDRESS" help:"Tell a mail or web address of the job's end, or of what stands before it: fail,requeue:me@example.org, slack,end:https://HOST/HOOK. May be repeated."`
	Env       []string `group:"job" short:"e" sep:"none" placeholder:"NAME[=VALUE]" help:"Variable; NAME alone takes yours. May be repeated."`
	Mount     []string `group:"job" short:"v" aliases:"volume" sep:"none" placeholder:"SOURCE[:TARGET[:ro]]" help:"Project storage. May be repeated."`
	Workdir   string   `group:"job" short:"D" aliases:"chdir" placeholder:"DIR" help:"Working directory in the container."`

	Container // in docker's words

	Command []string `kong:"-"` // with Image: a job without a file
	Line    []string `kong:"-"` // options of sbatch beside those above
}

// Any says whether anything is overridden.
func (o Overrides) Any() bool { return !reflect.ValueOf(o).IsZero() }

// quickMemoryPerCore is what a job without a file gets that asks for no memory, GiB.
const quickMemoryPerCore = 4

// Quick is the job that flags alone describe, before they are applied.
func (o Overrides) Quick() (job.Submission, error) {
	if o.Image == "" {
		return job.Submission{}, job.Problems{{Path: "--image", Message: "is missing: a job runs in a container", Hint: "gsubmit --image NAME -- COMMAND"}}
	}
	if slurm.Counts(o.Line) {
		return job.Submission{}, job.Problems{{Path: "--image", Message: "with a command behind -- has no tasks to count", Hint: "give the command to --wrap, or no options about tasks as -n, which is no name: that is -J"}}
	}
	cores := max(o.CPUs, 1)
	memory := quickMemoryPerCore * cores
	if o.Exclusive {
		memory = 1 // the least that a node has: the job gets all
	}
	return job.Submission{Spec: job.Spec{
		Name:    o.quickName(),
		Request: job.Request{Resources: job.Resources{CPUs: cores, CPUMemoryGB: memory}},
		Gbatch:  &job.Gbatch{MemoryByDefault: !o.Exclusive},
	}}, nil
}

// quickName is the name of what is run: of the command, or of the image, which has
// one of its own.
func (o Overrides) quickName() string {
	if len(o.Command) > 0 {
		return path.Base(o.Command[0])
	}
	name, _, _ := strings.Cut(path.Base(o.Image), "@")
	name, _, _ = strings.Cut(name, ":")
	return name
}

// Apply puts what is overridden into a job and checks it again. Problems have
// the flags as their path.
func (o Overrides) Apply(sub job.Submission, surroundings Options) (job.Submission, error) {
	g := job.Gbatch{}
	if sub.Spec.Gbatch != nil {
		g = *sub.Spec.Gbatch
	}
	sub.Spec.Gbatch = &g
	a := &applied{sub: &sub, surroundings: surroundings}
	a.amounts(o)
	a.container(o)
	a.docker(o.Container)
	a.when(o)
	a.notify(o.Notify)
	a.others(o)
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
	out.Notes, out.Hold, out.Brought = append(sub.Notes, out.Notes...), sub.Hold, sub.Brought // none of which is in a document
	return out, err
}

// ForScript takes those out that a batch script's own options are told in: there
// they are sbatch's, whose -c is of each task and whose -G of all nodes.
func (o *Overrides) ForScript() (line []string) {
	add := func(option, value string) {
		if value != "" && value != "0" {
			line = append(line, option+"="+value)
		}
	}
	if _, err := slurm.ParseGPUs(o.GPUs); err == nil && o.GPUs != "all" && o.GPUs != "" {
		add("--gpus", o.GPUs)
		o.GPUs = ""
	}
	add("--cpus-per-task", strconv.Itoa(o.CPUs))
	add("--nodes", strconv.Itoa(o.Nodes))
	add("--partition", o.Cluster)
	if o.Mem != "" {
		line = append(line, "--mem="+o.Mem)
	}
	if o.Exclusive {
		line = append(line, "--exclusive")
	}
	line = append(line, o.Line...)
	o.CPUs, o.Nodes, o.Mem, o.Cluster, o.Exclusive, o.Line = 0, 0, "", "", false, nil
	return line
}

// applied is a job to which overrides are being applied.
type applied struct {
	sub          *job.Submission
	surroundings Options
	problems     job.Problems
}

func (a *applied) check(flag, value string, err error) bool {
	if err != nil {
		a.problems = append(a.problems, job.Problem{Path: flag, Message: fmt.Sprintf("is %s: %v", document.Quote(value), err)})
	}
	return err == nil
}

func (a *applied) amounts(o Overrides) {
	r, g := &a.sub.Spec.Request.Resources, a.sub.Spec.Gbatch
	a.alike(o)
	r.CPUs = cmp.Or(o.CPUs, r.CPUs)
	if o.Mem != "" {
		mib, err := sizes.Parse(o.Mem)
		if a.check("--mem", o.Mem, err) {
			r.CPUMemoryGB, g.AllMemory, g.MemoryByDefault = max(sizes.GiB(mib), 1), mib == 0, false
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
	g.Nodes = cmp.Or(o.Nodes, g.Nodes)
	g.Exclusive = g.Exclusive || o.Exclusive
	for _, list := range []struct {
		flag, text string
		to         *[]string
	}{{"--nodelist", o.NodeList, &g.NodeNames}, {"--exclude", o.Exclude, &g.ExcludeNodes}} {
		if list.text != "" {
			names, err := nodelist.Parse(list.text)
			a.check(list.flag, list.text, err)
			*list.to = names
		}
	}
}

// alike refuses other amounts for nodes of which some have others.
func (a *applied) alike(o Overrides) {
	if len(a.sub.Spec.Gbatch.OtherGroups) == 0 {
		return
	}
	for _, given := range []struct {
		flag string
		is   bool
	}{{"--cpus", o.CPUs > 0}, {"--mem", o.Mem != ""}, {"--gpus", o.GPUs != ""}, {"--nodes", o.Nodes > 0}} {
		if given.is {
			a.problems = append(a.problems, job.Problem{Path: given.flag, Message: "is for jobs whose nodes are alike, and this one has groups of them", Hint: "change the amounts of its groups in the file"})
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
	a.sub.Spec.Name = cmp.Or(o.Name, a.sub.Spec.Name)
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
	docker.WorkingDir = cmp.Or(o.Workdir, docker.WorkingDir)
	env := map[string]string{}
	maps.Copy(env, docker.Environment)
	for _, text := range o.Env {
		name, value, given := strings.Cut(text, "=")
		if !given && a.surroundings.Env != nil {
			value, given = a.surroundings.Env(name)
		}
		if !given {
			a.check("--env", name, unset(name))
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

// unset says what is wrong with a variable that has no value; -e is a file to
// those who are used to sbatch.
func unset(name string) error {
	if strings.ContainsAny(name, "./%") {
		return errors.New("is no variable: for a file of the program's errors write --error FILE")
	}
	return errors.New("is not set where the job is submitted")
}

// notify adds whom flags name to those who are told. It wins over what the file says
// of the same address. Words before the address are events and a format.
func (a *applied) notify(list []string) {
	var given []job.Notify
	for _, text := range list {
		x := job.Notify{To: text}
		if words, to, ok := strings.Cut(text, ":"); ok && !strings.HasPrefix(to, "//") {
			x.To = to
			for _, word := range strings.Split(words, ",") {
				switch {
				case slices.Contains(job.NotifyEvents, word):
					x.On = append(x.On, word)
				case slices.Contains(job.NotifyFormats, word) && x.Format == "":
					x.Format = word
				default:
					a.check("--notify", word, fmt.Errorf("before the colon stand events (%s) and one format (%s)", strings.Join(job.NotifyEvents, ", "), strings.Join(job.NotifyFormats, ", ")))
				}
			}
		}
		given = append(given, x)
	}
	g := a.sub.Spec.Gbatch
	g.Notify = slices.DeleteFunc(slices.Clone(g.Notify), func(of job.Notify) bool {
		return slices.ContainsFunc(given, func(x job.Notify) bool { return x.To == of.To })
	})
	g.Notify = append(g.Notify, given...)
}

// others applies what options of sbatch say, and notes what sbatch would
// understand in another way.
func (a *applied) others(o Overrides) {
	if len(a.problems) > 0 {
		return
	}
	r, g := &a.sub.Spec.Request.Resources, a.sub.Spec.Gbatch
	line := o.Line
	if n, err := strconv.Atoi(o.Cluster); err == nil && n > 0 {
		r.ClusterID, g.Partitions = n, nil
	} else if o.Cluster != "" {
		line = append(slices.Clip(line), "--partition="+o.Cluster)
	}
	sub, err := slurm.Amend(*a.sub, line, a.surroundings.slurm())
	if ps, ok := errors.AsType[job.Problems](err); ok {
		a.problems = ps
		return
	}
	*a.sub = sub
	if nodes := max(g.Nodes, 1); o.GPUs != "" && nodes > 1 && r.GPUs >= 1 {
		a.sub.Notes = append(a.sub.Notes, job.Note{Path: "--gpus", Message: fmt.Sprintf("is of each node here: %v in all", r.GPUs*float64(nodes))})
	}
}

func (a *applied) when(o Overrides) {
	sc, g := &a.sub.Spec.Request.Scheduling, a.sub.Spec.Gbatch
	if o.Time != "" {
		d, limited, err := times.ParseLimit(o.Time)
		if a.check("--time", o.Time, err) {
			if sc.MaxDuration = d; !limited {
				sc.MaxDuration = 0
			}
		}
	}
	if o.Array != "" {
		set, most, err := indexes.ParseArray(o.Array)
		if a.check("--array", o.Array, err) {
			g.Tasks = &job.Tasks{Indexes: set.String(), Parallelism: most}
		}
	}
	if o.Retry != 0 {
		g.Retry = &job.Retry{Limit: o.Retry}
	}
	g.QOS = cmp.Or(o.QOS, g.QOS)
	if o.Requeue && !sc.Restartable {
		sc.Restartable = true
		g.HaltSignal = cmp.Or(g.HaltSignal, "TERM") // the flag is Slurm's, and programs that are started by it expect that
	}
}
