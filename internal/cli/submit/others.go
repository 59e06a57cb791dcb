package submit

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/alecthomas/kong"

	"gbatch/internal/cli/exit"
	"gbatch/internal/document"
	"gbatch/internal/job/importer/slurm"
)

// OtherOptions takes out of the command line what gsubmit has no flag for: the
// options of sbatch, by the table that reads #SBATCH lines. Where a letter is
// another option in docker's words, its value tells which one is meant.
func (o *Submit) OtherOptions(args []string, own []*kong.Flag) ([]string, error) {
	var rest []string
	for i := 0; i < len(args); i++ {
		w := args[i]
		if len(w) < 2 || w[0] != '-' {
			rest = append(rest, w)
			continue
		}
		if alike := sameFlag[w]; alike != "" {
			rest = append(rest, alike)
			continue
		}
		name, value, joined := splitOption(w)
		next := value
		if !joined && i+1 < len(args) {
			next = args[i+1]
		}
		takes, known := slurm.Takes(name)
		switch alike, f := dockers(name, next), flagOf(own, name); {
		case alike != "":
			rest = append(rest, alike+"="+next)
			takes = true
		case f != nil && name == "--exclusive" && joined: // =user
			o.Line = append(o.Line, w)
			takes = false
		case f != nil && f.IsBool() && joined && w[1] != '-': // -Hn 3
			rest, args[i] = append(rest, name), "-"+value
			i--
			continue
		case f != nil:
			rest = append(rest, w)
			if takes = !f.IsBool() && !f.IsCounter(); takes && !joined && i+1 < len(args) {
				rest = append(rest, next)
			}
		case known:
			o.Line = append(o.Line, w)
			if takes && !joined && i+1 < len(args) {
				o.Line = append(o.Line, next)
			}
		default:
			return nil, unknown(name, own)
		}
		if takes && !joined {
			i++
		}
	}
	return rest, nil
}

// splitOption takes --name=value and -nvalue apart.
func splitOption(w string) (name, value string, joined bool) {
	if strings.HasPrefix(w, "--") {
		return strings.Cut(w, "=")
	}
	return w[:2], strings.TrimPrefix(w[2:], "="), len(w) > 2
}

func flagOf(own []*kong.Flag, name string) *kong.Flag {
	for _, f := range own {
		long, ok := strings.CutPrefix(name, "--")
		if ok && (long == f.Name || slices.Contains(f.Aliases, long)) || !ok && f.Short != 0 && name == "-"+string(f.Short) {
			return f
		}
	}
	return nil
}

// sameFlag are options of sbatch and docker that gsubmit has under another name.
var sameFlag = map[string]string{
	"--parsable": "--ids", "--test-only": "--dry-run",
	"-it": "--interactive", "-ti": "--interactive", "--tty": "--interactive",
}

// publishing is what docker's -p takes; a partition has no colon.
var publishing = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9.\[\]:a-f]*:[0-9]+(/[a-z]+)?$`)
})

// dockers is the flag that a letter stands for in docker's words, if its value is
// none that sbatch's could have.
func dockers(name, value string) string {
	switch {
	case name == "-w" && strings.HasPrefix(value, "/"):
		return "--workdir"
	case name == "-p" && publishing().MatchString(value):
		return "--publish"
	case name == "-m" && value != "" && value[0] >= '0' && value[0] <= '9':
		return "--mem"
	}
	return ""
}

// notDockers is what to write instead of docker's other options.
var notDockers = map[string]string{
	"--detach": "every job runs on its own: leave it out, and watch it with --follow or glog",
	"--device": "a job has the GPUs that it asks for: --gpus N", "--env-file": "name the variables with --env",
	"--hostname": "the node's name is the job's", "--init": "a stop reaches the program behind shells in any case: leave it out",
	"--ipc": "say how large /dev/shm is: --shm-size 8g", "--mount": "write -v SOURCE:TARGET[:ro]",
	"--pull": "an image is looked up when the job starts: leave it out", "--restart": "--retry N tries again what failed, --requeue what its node failed",
	"--ulimit": "limits are the node's: leave it out", "--tmpfs": "write a tmpfs into request.docker.storage of a native job",
	"--volumes-from": "mount the storage itself: -v SOURCE:TARGET", "--group-add": "write groupAdd into request.docker of a native job",
	"--cap-drop": "a container has few capabilities: leave it out", "--security-opt": "leave it out: what a container may do is the site's",
	"--cpuset-cpus": "cores are chosen near the job's GPUs: -c N", "--pid": "a job sees its own processes only",
	"--dns": "names are looked up as on the node", "--add-host": "write the address, or a name that the node knows",
}

// unknown says what is meant, or what to do instead.
func unknown(name string, own []*kong.Flag) error {
	if hint := notDockers[name]; hint != "" {
		return exit.Usagef("there is no flag %s: %s", name, hint)
	}
	if len(name) == 2 { // in the other case, perhaps
		if f := flagOf(own, otherCase(name)); f != nil {
			return exit.Usagef("there is no flag %s; did you mean -%c, --%s?", name, f.Short, f.Name)
		}
	}
	names := slurm.Names()
	for _, f := range own {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
			for _, alias := range f.Aliases {
				names = append(names, "--"+alias)
			}
		}
	}
	if near := document.Nearest(name, names); near != "" && len(name) > 2 {
		return exit.Usagef("there is no flag %s; did you mean %s?", name, near)
	}
	return exit.Usagef("there is no flag %s", name)
}

// otherCase is a short flag with a large letter for a small one, or the other way round.
func otherCase(name string) string {
	if lower := strings.ToLower(name); lower != name {
		return lower
	}
	return strings.ToUpper(name)
}
