package cli

import (
	"encoding/json"
	"os"
	"strings"
	"time"

	"gbatch/internal/job"
	"gbatch/internal/job/importer"
	"gbatch/internal/job/importer/nvct"
)

// JobFlags are gsubmit's flags about the job itself: they win over its file,
// and with a command behind -- they are the whole job.
type JobFlags struct {
	JobName   string   `group:"job" short:"J" placeholder:"NAME" help:"Name."`
	Image     string   `group:"job" placeholder:"NAME" help:"Container image."`
	GPUs      string   `group:"job" name:"gpus" short:"G" placeholder:"N" help:"GPUs of each node: a number, MODEL:NUMBER, a share such as 0.5, or all."`
	CPUs      int      `group:"job" name:"cpus" short:"c" placeholder:"N" help:"Cores of each node."`
	Mem       string   `group:"job" placeholder:"SIZE" help:"Memory of each node, as 16G (else 4 GiB for each core)."`
	Time      string   `group:"job" short:"t" placeholder:"TIME" help:"Time limit: minutes, H:M:S, D-H:M:S or \"2 hours\"."`
	Nodes     int      `group:"job" short:"N" placeholder:"N" help:"Nodes; all start together."`
	Cluster   int      `group:"job" short:"p" placeholder:"NUMBER" help:"Cluster."`
	Nodelist  string   `group:"job" short:"w" placeholder:"NODES" help:"Only these nodes, as n[1-3],m1."`
	Exclude   string   `group:"job" short:"x" placeholder:"NODES" help:"None of these nodes."`
	Exclusive bool     `group:"job" help:"No other job on the node."`
	Array     string   `group:"job" short:"a" placeholder:"INDEXES" help:"Run it once for each index: 0-99, 1,5,7-20:2, or 0-99%8 for at most 8 at once."`
	Retry     int      `group:"job" placeholder:"N" help:"Try again so many times what failed."`
	Requeue   bool     `group:"job" help:"Queue it again when it is halted or its node fails."`
	QOS       string   `group:"job" name:"qos" short:"q" placeholder:"NAME" help:"Service class."`
	Env       []string `group:"job" short:"e" sep:"none" placeholder:"NAME[=VALUE]" help:"Variable; NAME alone takes yours. May be repeated."`
	Mount     []string `group:"job" short:"v" sep:"none" placeholder:"SOURCE[:TARGET[:ro]]" help:"Project storage. May be repeated."`
	Workdir   string   `group:"job" short:"D" placeholder:"DIR" help:"Working directory in the container."`

	command []string
}

// afterDashes takes what stands behind --.
func (f *JobFlags) afterDashes(args []string) { f.command = args }

// Overrides are the flags as the job's reader takes them.
func (f *JobFlags) Overrides() importer.Overrides {
	return importer.Overrides{
		Name: f.JobName, Image: f.Image, Command: f.command, GPUs: f.GPUs, CPUs: f.CPUs, Mem: f.Mem, Time: f.Time, Nodes: f.Nodes, Cluster: f.Cluster,
		NodeList: f.Nodelist, Exclude: f.Exclude, Exclusive: f.Exclusive, Array: f.Array, Retry: f.Retry, Requeue: f.Requeue, QOS: f.QOS,
		Env: f.Env, Mount: f.Mount, Workdir: f.Workdir,
	}
}

// jobOf reads the job's file and applies the flags, or makes a job of the flags
// alone. The name is for problems.
func (a *App) jobOf(o SubmitOptions, secrets map[string]string) (name string, doc json.RawMessage, sub job.Submission, err error) {
	here := importer.Options{
		Format: importer.Format(o.Format), Image: o.Overrides.Image,
		Env: o.environment(secrets), Now: job.Instant(time.Now().UnixMilli()), Zone: time.Local,
	}
	switch {
	case o.NVCT != nil:
		return a.nvctTask(o)
	case len(o.Overrides.Command) > 0 && o.File == "-":
		name = "gsubmit"
		sub, err = o.Overrides.Quick()
	default:
		var data []byte
		if name, data, err = a.readJobFile(o.File); err != nil {
			return name, nil, sub, err
		}
		if here.Args = o.Overrides.Command; len(here.Args) > 0 && !takesArgs(data, here.Format) {
			return name, nil, sub, usageError("there is a job file, %s, and a command behind --: only a script takes arguments there", o.File)
		}
		o.Overrides.Command = nil
		doc, sub, err = prepare(data, here)
	}
	if err == nil && o.Overrides.Any() {
		if sub, err = o.Overrides.Apply(sub, here); err == nil {
			doc, err = sub.Document()
		}
	}
	if err != nil {
		return name, nil, sub, &exitError{ExitUsage, fileError(name, err)}
	}
	return name, doc, sub, nil
}

// environment is where a file's variables without a value come from: what flags
// say of them, else the process.
func (o SubmitOptions) environment(secrets map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if value, ok := secrets[name]; ok {
			return value, true
		}
		for _, text := range o.Overrides.Env {
			if n, value, given := strings.Cut(text, "="); given && n == name {
				return value, true
			}
		}
		return os.LookupEnv(name)
	}
}

// nvctTask is jobOf for a task that flags describe, with or without a file.
func (a *App) nvctTask(o SubmitOptions) (name string, doc json.RawMessage, sub job.Submission, err error) {
	name = "gsubmit"
	var data []byte
	if o.File != "" {
		if name, data, err = a.readJobFile(o.File); err != nil {
			return name, nil, sub, err
		}
		if len(data) == 0 {
			return name, nil, sub, usageError("%s is empty", name)
		}
	}
	if sub, err = nvct.ParseFlags(data, *o.NVCT); err == nil {
		doc, err = sub.Document()
	}
	if err != nil {
		return name, nil, sub, &exitError{ExitUsage, fileError(name, err)}
	}
	return name, doc, sub, nil
}

// takesArgs says whether a job file is a script, whose arguments may follow.
func takesArgs(data []byte, format importer.Format) bool {
	if format == importer.Unknown {
		format, _ = importer.Detect(data) // what it is not is told by the reader
	}
	return format == importer.Slurm
}
