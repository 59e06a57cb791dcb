package importer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/oci/ref"
)

// parseSlurm reads a batch script whose #SBATCH lines say what it needs. The
// script itself runs in the container, once on each node.
func parseSlurm(data []byte, o Options) (job.Submission, error) {
	if len(data) > document.MaxBytes {
		return job.Submission{}, job.Problems{{Message: fmt.Sprintf("has %d bytes, a script may have at most %d", len(data), document.MaxBytes),
			Hint: "put what it does into a file in project storage, and call that"}}
	}
	s := &slurmScript{o: o, spec: job.Spec{Gbatch: &job.Gbatch{Source: string(Slurm)}}, tasksPerNode: -1, nodes: 1, mem: -1}
	s.image = o.SlurmImage
	for _, d := range append(s.directives(string(data)), s.words(o.SlurmArgs, 0)...) {
		s.apply(d)
	}
	if s.spec.Name == "" {
		s.spec.Name = "sbatch"
	}
	s.amounts()
	s.body(string(data))
	if cmd := &s.spec.Request.Docker.Command; len(cmd.Argv) > 0 {
		cmd.Argv = append(cmd.Argv, o.ScriptArgs...)
	}
	s.container()
	return s.result()
}

// slurmScript is a script on its way to a job: the options that only make sense
// together are kept until all are read.
type slurmScript struct {
	o        Options
	spec     job.Spec
	problems job.Problems
	notes    []job.Note

	nodes        int
	tasks        int // --ntasks; 0: not given
	tasksPerNode int // -1: not given
	cpusPerTask  int
	mem          int64 // MiB a node, -1: not given, 0: all
	memPerCPU    int64
	memPerGPU    int64
	gpus         slurmGPUs // of all nodes together
	gpusPerNode  slurmGPUs
	gpusPerTask  slurmGPUs
	cpusPerGPU   int
	tasksPerGPU  int

	image      string
	noImage    bool // one was named that cannot be used, which was told
	entrypoint bool // the image's own is kept
	mailTypes  []string
	mailUser   string
}

// directive is one option of the script.
type directive struct {
	name  string // as --mem, or -N as it was written
	value string
	given bool // it has a value, which may be empty
	line  int
}

// directives reads the #SBATCH lines, which end at the first command.
func (s *slurmScript) directives(text string) []directive {
	var all []directive
	line := 0
	for l := range strings.Lines(text) {
		line++
		l = strings.TrimSpace(l)
		rest, isDirective := strings.CutPrefix(l, "#SBATCH")
		switch {
		case isDirective && (rest == "" || rest[0] == ' ' || rest[0] == '\t'):
			all = append(all, s.options(strings.TrimSpace(rest), line)...)
		case l == "" || strings.HasPrefix(l, "#"):
		default:
			return all
		}
	}
	return all
}

// options splits one line, which may have several options, quotes, and a comment.
func (s *slurmScript) options(text string, line int) []directive {
	words, err := shellWords(text)
	if err != nil {
		s.problem(line, "#SBATCH", err.Error(), "check the quotes")
		return nil
	}
	return s.words(words, line)
}

func (s *slurmScript) words(words []string, line int) []directive {
	var all []directive
	for i := 0; i < len(words); i++ {
		w := words[i]
		if strings.HasPrefix(w, "#") {
			break
		}
		d := directive{name: w, line: line}
		switch {
		case w == "hetjob" || w == "packjob":
			s.problem(line, w, "is not supported: all nodes of a job are alike", "submit a job for each part, and let one depend on the other")
			continue
		case strings.HasPrefix(w, "--"):
			d.name, d.value, d.given = strings.Cut(w, "=")
		case strings.HasPrefix(w, "-") && len(w) > 2: // -N4
			d.name, d.value, d.given = w[:2], strings.TrimPrefix(w[2:], "="), true
		case !strings.HasPrefix(w, "-"):
			s.problem(line, quote(w), "is no option", "options start with - or --")
			continue
		}
		if opt, ok := slurmOption(d.name); ok && opt.needsValue() && !d.given && i+1 < len(words) {
			i++
			d.value, d.given = words[i], true
		}
		all = append(all, d)
	}
	return all
}

// apply does what one option says.
func (s *slurmScript) apply(d directive) {
	opt, ok := slurmOption(d.name)
	switch {
	case !ok:
		s.problem(d.line, d.name, "is no option that is known here", nearestOption(d.name))
	case opt.instead != "":
		s.problem(d.line, d.name, "is not supported", opt.instead)
	case opt.needsValue() && !d.given:
		s.problem(d.line, d.name, "needs a value", "")
	case opt.flag != nil && d.given && opt.value == nil:
		s.problem(d.line, d.name, fmt.Sprintf("takes no value, has %s", quote(d.value)), "")
	case opt.note != "" && opt.value == nil && opt.flag == nil:
		s.note(d.line, opt.long, opt.note)
	case opt.value != nil && (d.given || opt.flag == nil):
		if err := opt.value(s, d.value); err != nil {
			s.problem(d.line, d.name, fmt.Sprintf("is %s: %v", quote(d.value), err), opt.hint)
		} else if opt.note != "" {
			s.note(d.line, opt.long, opt.note)
		}
	default:
		opt.flag(s)
	}
}

func (s *slurmScript) problem(line int, path, message, hint string) {
	if len(s.problems) < document.MaxProblems {
		s.problems = append(s.problems, job.Problem{Path: path, Line: line, Message: message, Hint: hint})
	}
}

// note remarks on something, once.
func (s *slurmScript) note(line int, path, message string) {
	n := job.Note{Path: path, Message: message}
	if line > 0 {
		n.Path = fmt.Sprintf("%s (line %d)", path, line)
	}
	if !slices.Contains(s.notes, n) {
		s.notes = append(s.notes, n)
	}
}

// container settles the image and where the script's mails go.
func (s *slurmScript) container() {
	image := s.image
	if s.o.Image != "" {
		image = s.o.Image
	}
	if image == "" && !s.noImage {
		s.problem(0, "", "names no container image, and a job runs in one", "submit it with --image NAME, or write #SBATCH --container-image=NAME into it")
	}
	s.spec.Request.Docker.Image = enrootImage(image)
	s.mails()
}

// enrootImage turns enroot's REGISTRY#IMAGE into REGISTRY/IMAGE.
func enrootImage(s string) string {
	s = strings.TrimPrefix(s, "docker://")
	if i := strings.IndexByte(s, '#'); i > 0 {
		return s[:i] + "/" + s[i+1:]
	}
	return s
}

// result checks the job by the native rules and returns it.
func (s *slurmScript) result() (job.Submission, error) {
	if len(s.problems) > 0 {
		// In the order of the script; what is about all of it comes last.
		slices.SortStableFunc(s.problems, func(a, b job.Problem) int { return cmp.Compare(uint(a.Line-1), uint(b.Line-1)) })
		return job.Submission{}, s.problems
	}
	sub := job.Submission{Spec: s.spec}
	if r, creds, err := ref.Parse(s.spec.Request.Docker.Image); err == nil { // a bad one is explained by finish
		sub.Spec.Request.Docker.Image, sub.Registry = r.String(), creds
	}
	d := &decoder{notes: s.notes}
	return d.finish(sub)
}
