package slurm

import (
	"cmp"
	"strings"
)

// variables are those that stand for options of sbatch where a script is
// submitted: they win over the script's, and the command line over them.
// Those in flags need no value.
var (
	variables = []string{"account", "array=ARRAY_INX", "begin", "clusters", "constraint", "core-spec", "cpus-per-gpu", "distribution", "error", "exclusive",
		"export", "gpu-bind", "gpu-freq", "gpus", "gpus-per-node", "gpus-per-task", "gres", "hint", "input", "job-name", "mem-bind", "mem-per-cpu", "mem-per-gpu",
		"mem=MEM_PER_NODE", "open-mode", "output", "partition", "profile", "qos", "reservation", "signal", "threads-per-core", "time=TIMELIMIT", "wckey"}
	flags = []string{"get-user-env", "ignore-pbs", "no-requeue", "overcommit", "requeue"}
)

// environment gives the options that variables stand for.
func (s *script) environment() []directive {
	var words []string
	look := func(option string, flag bool) {
		name, variable, named := strings.Cut(option, "=")
		if !named {
			variable = strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		}
		value, ok := s.o.Env(cmp.Or(s.o.Variables, "SBATCH_") + variable)
		switch {
		case !ok:
		case flag || value == "" || name == "exclusive" && value == "exclusive":
			words = append(words, "--"+name)
		default:
			words = append(words, "--"+name+"="+value)
		}
	}
	if s.o.Env == nil {
		return nil
	}
	for _, o := range variables {
		look(o, false)
	}
	for _, o := range flags {
		look(o, true)
	}
	if s.o.Own != nil {
		look("wait", true)
	}
	return s.words(words, 0)
}
