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

// bsubOptions are the same for #BSUB lines, by the words of LSF.
var bsubOptions = map[string]string{
	"-J": "--job-name", "-n": "--ntasks", "-nnodes": "--nodes", "-W": "--time", "-q": "--partition", "-P": "--account", "-o": "--output", "-oo": "--output",
	"-e": "--error", "-eo": "--error", "-i": "--input", "-m": "--nodelist", "-M": "--mem", "-x": "--exclusive", "-w": "--dependency", "-cwd": "--chdir",
	"-b": "--begin", "-t": "--deadline", "-r": "--requeue", "-u": "--mail-user", "-B": "--mail-type", "-N": "--mail-type", "-gpu": "--gpus-per-node",
	"-env": "--export", "-H": "--hold", "-sp": "--priority", "-U": "--reservation", "-K": "--wait",
}

// bsubResources are the same for the parts of -R.
var bsubResources = []struct{ part, option string }{
	{"ptile=", "--ntasks-per-node"}, {"hosts=", "--nodes"}, {"mem=", "--mem"}, {"ngpus", "--gpus-per-node"},
}

// maxBeforeOthers is how many lines that are no comments Slurm reads on for lines of
// other systems.
const maxBeforeOthers = 100

// others refuses lines for PBS and LSF, which Slurm reads after all #SBATCH lines, so
// that they win over them, and also behind commands.
func (s *script) others(text string) {
	line, commands := 0, 0
	for l := range strings.Lines(text) {
		line++
		switch word := l[:min(len(l), len("#BSUB"))]; {
		case s.ignoreOthers || s.full() || commands > maxBeforeOthers:
			return
		case word == "#BSUB":
			s.refuseOther(line, word, insteadOfBSUB(l[len(word):]), l[len(word):])
		case strings.HasPrefix(l, "#PBS"):
			s.refuseOther(line, "#PBS", insteadOfPBS(strings.Fields(l[len("#PBS"):])), l[len("#PBS"):])
		case !strings.HasPrefix(l, "#"):
			commands++
		}
	}
}

// refuseOther tells of one line, which begins with a word, what to write instead.
func (s *script) refuseOther(line int, word string, options []string, rest string) {
	if strings.TrimSpace(rest) == "" {
		return
	}
	hint := "remove the line, or give --ignore-pbs"
	if len(options) > 0 {
		hint = "write #SBATCH " + strings.Join(options, " and ") + " instead, or remove the line, or give --ignore-pbs"
	}
	s.problem(line, word, "is not read here; under Slurm it wins over #SBATCH lines", hint)
}

// withOption adds an option that is not there yet; "" is none.
func withOption(options []string, option string) []string {
	if option == "" || slices.Contains(options, option) {
		return options
	}
	return append(options, option)
}

// insteadOfBSUB gives the options of sbatch that a #BSUB line stands for.
func insteadOfBSUB(rest string) (options []string) {
	for _, w := range strings.Fields(rest) {
		if len(w) < 2 || w[0] != '-' {
			continue
		}
		if option, ok := bsubOptions[w]; ok {
			options = withOption(options, option)
			continue
		}
		options = withOption(options, bsubOptions[w[:2]]) // its value follows it at once
		if w[1] == 'R' {
			for _, r := range bsubResources {
				if strings.Contains(rest, r.part) {
					options = withOption(options, r.option)
				}
			}
		}
	}
	return options
}

// insteadOfPBS gives the options of sbatch that the words of a #PBS line stand for.
func insteadOfPBS(words []string) (options []string) {
	for i, w := range words {
		if len(w) < 2 || w[0] != '-' {
			continue
		}
		options = withOption(options, pbsOptions[w[1]])
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
					options = withOption(options, r.option)
				}
			}
		}
	}
	return options
}
