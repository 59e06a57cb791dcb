package submit

import (
	"gbatch/internal/job/importer"
)

// jobFlags are gsubmit's flags about the job itself: they win over its file,
// and with a command behind -- they are the whole job.
type jobFlags struct {
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

// AfterDashes takes what stands behind --.
func (f *jobFlags) AfterDashes(args []string) { f.command = args }

// overrides are the flags as the job's reader takes them.
func (f *jobFlags) overrides() importer.Overrides {
	return importer.Overrides{
		Name: f.JobName, Image: f.Image, Command: f.command, GPUs: f.GPUs, CPUs: f.CPUs, Mem: f.Mem, Time: f.Time, Nodes: f.Nodes, Cluster: f.Cluster,
		NodeList: f.Nodelist, Exclude: f.Exclude, Exclusive: f.Exclusive, Array: f.Array, Retry: f.Retry, Requeue: f.Requeue, QOS: f.QOS,
		Env: f.Env, Mount: f.Mount, Workdir: f.Workdir,
	}
}
