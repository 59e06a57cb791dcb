package slurm

import (
	"slices"
	"strings"
)

// pbsOptions are the options of #PBS lines with those of #SBATCH that say the same.
// One that is not among them says nothing that a job here has.
var pbsOptions = map[byte]string{
	'a': "--begin", 'A': "--account", 'd': "--chdir", 'e': "--error", 'h': "--hold", 'J': "--array", 'l': "", 'm': "--mail-type", 'M': "--mail-user",
	'N': "--job-name", 'o': "--output", 'p': "--nice", 'q': "--partition", 'r': "--requeue", 't': "--array", 'v': "--export", 'V': "--export", 'w': "--chdir", 'W': "--dependency",
}

// pbsResources are the same for the parts of -l.
var pbsResources = []struct{ name, option string }{
	{"nodes=", "--nodes"}, {"select=", "--nodes"}, {"ppn=", "--ntasks-per-node"}, {"mpiprocs=", "--ntasks-per-node"}, {"ncpus=", "--cpus-per-task"},
	{"procs=", "--ntasks"}, {"gpus=", "--gpus-per-node"}, {"ngpus=", "--gpus-per-node"}, {"mem=", "--mem"}, {"pmem=", "--mem-per-cpu"}, {"vmem=", "--mem"},
	{"walltime=", "--time"}, {"file=", "--tmp"},
}

// maxBeforePBS is how many lines that are no comments Slurm reads on for #PBS lines.
const maxBeforePBS = 100

// pbs refuses #PBS lines, which Slurm reads after all #SBATCH lines, so that they win
// over them, and also behind commands.
func (s *script) pbs(text string) {
	line, commands := 0, 0
	for l := range strings.Lines(text) {
		line++
		rest, is := strings.CutPrefix(l, "#PBS")
		switch {
		case s.ignorePBS || s.full() || commands > maxBeforePBS:
			return
		case !is && !strings.HasPrefix(l, "#"):
			commands++
		case !is || strings.TrimSpace(rest) == "":
		default:
			hint := "remove the line, or give --ignore-pbs"
			if options := insteadOfPBS(strings.Fields(rest)); len(options) > 0 {
				hint = "write #SBATCH " + strings.Join(options, " and ") + " instead, or remove the line, or give --ignore-pbs"
			}
			s.problem(line, "#PBS", "is not read here; under Slurm it wins over #SBATCH lines", hint)
		}
	}
}

// insteadOfPBS gives the options of sbatch that the words of a #PBS line stand for.
func insteadOfPBS(words []string) (options []string) {
	add := func(option string) {
		if option != "" && !slices.Contains(options, option) {
			options = append(options, option)
		}
	}
	for i, w := range words {
		if len(w) < 2 || w[0] != '-' {
			continue
		}
		add(pbsOptions[w[1]])
		if w[1] != 'l' {
			continue
		}
		list := w[2:]
		if list == "" && i+1 < len(words) {
			list = words[i+1]
		}
		for _, part := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ':' || r == '+' }) {
			for _, r := range pbsResources {
				if strings.HasPrefix(part, r.name) {
					add(r.option)
				}
			}
		}
	}
	return options
}
