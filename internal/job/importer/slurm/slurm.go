// Package slurm reads batch scripts for Slurm: the #SBATCH lines say what the
// job needs, and the script is its command. It also reads the command line of
// sbatch and Slurm's forms of times, amounts and lists. It is pure.
package slurm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/foreign"
	"gbatch/internal/job/words"
	"gbatch/oci/ref"
)

// Source is the format's name, which a job keeps.
const Source = "slurm"

// Options are what a script alone does not say. The zero value reads every
// script that needs nothing of its surroundings.
type Options struct {
	Args  []string // of the script
	Image string   // wins over one that is named

	// What the command line of sbatch adds.
	Line         []string // options, which win over the script's
	DefaultImage string   // where neither names one
	// Own gets what the script and variables say to sbatch itself, as --parsable and
	// --wait; nil: the caller is not sbatch, and they are refused.
	Own map[string]string

	// PassesOn says that the caller has the variables of the calling shell go along,
	// where ExportsAll wants that.
	PassesOn bool

	FileName  string // of the script, which names the job; empty: it has none
	File      string // the script's path, as it was given; empty: it was read from none
	Directory string // that it is submitted from
	Host      string // the machine there
	Variables string // what the names of those begin with that stand for options; empty: SBATCH_

	// Reservation finds one by its name or UUID; nil: none can be named.
	Reservation func(name string) (Reservation, error)

	// Widest is the most cores that a node has which is in one of these partitions, or in
	// the site where there are none; nil, or 0: not known.
	Widest func(partitions []string) int

	// Where the script was written; see importer.Options.
	Env  func(name string) (value string, ok bool)
	Now  job.Instant
	Zone *time.Location
}

// Parse reads a batch script whose #SBATCH lines say what it needs. The
// script itself runs in the container of the first node.
func Parse(data []byte, o Options) (job.Submission, error) {
	if len(data) > document.MaxBytes {
		return job.Submission{}, job.Problems{{Message: fmt.Sprintf("has %d bytes, a script may have at most %d", len(data), document.MaxBytes),
			Hint: "put what it does into a file in project storage, and call that"}}
	}
	s := newScript(o)
	s.spec = job.Spec{Gbatch: &job.Gbatch{Source: Source}}
	for _, d := range slices.Concat(s.directives(string(data)), s.environment(), s.words(o.Line, 0)) {
		s.apply(d)
	}
	s.others(string(data))
	s.spec.Name = cmp.Or(s.spec.Name, s.o.FileName, "sbatch")
	s.amounts()
	s.constrain()
	s.reserve()
	s.before()
	s.files()
	s.body(string(data))
	s.container()
	s.tell()
	return s.result()
}

func newScript(o Options) *script {
	return &script{o: o, known: allOptions(), tasksPerNode: -1, nodes: 1, mem: -1, memPerCPU: -1, memPerGPU: -1}
}

// script is a script on its way to a job: the options that only make sense
// together are kept until all are read.
type script struct {
	o        Options
	known    options
	spec     job.Spec
	problems job.Problems
	notes    []job.Note

	nodes        int
	mostNodes    int // that --nodes allows
	nodesGiven   bool
	tasks        int // --ntasks; 0: not given
	tasksPerNode int // -1: not given
	cpusPerTask  int
	mem          int64 // MiB a node, -1: not given, 0: all, as the next two
	memPerCPU    int64
	memPerGPU    int64
	gpus         GPUs // of all nodes together
	gpusPerNode  GPUs
	gpusPerTask  GPUs
	cpusPerGPU   int
	minCPUs      int // of each node
	tasksPerGPU  int
	pack         bool        // nodes are filled with tasks one after the other
	perSocket    bool        // how many tasks a socket has was given
	deadline     job.Instant // by which it has ended; 0: none

	reserved  *Reservation      // nil: none
	features  clauses           // of --constraint
	alike     bool              // the nodes have the same of these
	variables map[string]string // that stand for options which were given
	outside   bool              // the option that is applied wins over the script's

	stdio   job.Stdio
	workDir string // as it was given

	image        string
	noImage      bool // one was named that cannot be used, which was told
	entrypoint   bool // the image's own is kept
	ignoreOthers bool
	mailTypes    []string
	mailUser     string
}

// directive is one option of the script.
type directive struct {
	name  string // as --mem, or -N as it was written
	value string
	given bool // it has a value, which may be empty
	line  int
}

// directives reads the #SBATCH lines, which end at the first command.
func (s *script) directives(text string) []directive {
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
func (s *script) options(text string, line int) []directive {
	words, err := words.Split(withoutComment(text))
	if err != nil {
		s.problem(line, "#SBATCH", err.Error(), "check the quotes")
		return nil
	}
	return s.words(words, line)
}

// withoutComment cuts off what follows a # outside of quotes, also inside of a
// word. In an image it is enroot's, as NVCR.IO#NVIDIA/PYTORCH.
func withoutComment(text string) string {
	quote := byte(0)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && quote != '\'':
			i++
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
		case c == '\'' || c == '"':
			quote = c
		case c == '#' && !inImage(text[:i]):
			return text[:i]
		}
	}
	return text
}

// inImage says whether an image's name goes on behind text, in one word with the
// option or as the next one.
func inImage(text string) bool {
	words := strings.Fields(text)
	if len(words) == 0 || strings.TrimRight(text, " \t") != text {
		return false
	}
	last := words[len(words)-1]
	if len(words) > 1 {
		last = words[len(words)-2] + "=" + last
	}
	for _, option := range []string{"--image=", "--container-image="} {
		if strings.HasPrefix(words[len(words)-1], option) || strings.HasPrefix(last, option) {
			return true
		}
	}
	return false
}

func (s *script) words(words []string, line int) []directive {
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
			s.problem(line, document.Quote(w), "is no option", "options start with - or --")
			continue
		}
		opt, ok := s.known.meant(d.name)
		if ok && strings.HasPrefix(d.name, "--") {
			d.name = opt.long
		}
		if ok && opt.needsValue() && !d.given && i+1 < len(words) {
			i++
			d.value, d.given = words[i], true
		}
		all = append(all, d)
	}
	return all
}

// apply does what one option says.
func (s *script) apply(d directive) {
	opt, ok := s.known.find(d.name)
	s.outside = d.line == 0
	switch {
	case !ok && s.full(): // without the search for a suggestion, which takes its time
	case !ok:
		s.problem(d.line, d.name, "is no option that is known here", s.known.nearest(d.name))
	case opt.own && s.o.Own != nil && !d.given:
		s.o.Own[opt.long] = ""
	case opt.instead != "":
		s.problem(d.line, d.name, "is not supported", opt.instead)
	case opt.needsValue() && !d.given:
		s.problem(d.line, d.name, "needs a value", "")
	case opt.flag != nil && d.given && opt.value == nil:
		s.problem(d.line, d.name, fmt.Sprintf("takes no value, has %s", document.Quote(d.value)), "")
	case opt.note != "" && opt.value == nil && opt.flag == nil:
		s.note(d.line, opt.long, opt.note)
	case opt.value != nil && (d.given || opt.flag == nil):
		if err := opt.value(s, d.value); err != nil {
			s.problem(d.line, d.name, fmt.Sprintf("is %s: %v", document.Quote(d.value), err), opt.hint)
			return
		}
		if opt.note != "" {
			s.note(d.line, opt.long, opt.note)
		}
		if opt.env != "" {
			s.variable(opt.env, d.value)
		}
	default:
		if opt.flag(s); opt.note != "" {
			s.note(d.line, opt.long, opt.note)
		}
	}
}

func (s *script) problem(line int, path, message, hint string) {
	if !s.full() {
		s.problems = append(s.problems, job.Problem{Path: path, Line: line, Message: message, Hint: hint})
	}
}

// full says that more problems are not told.
func (s *script) full() bool { return len(s.problems) >= document.MaxProblems }

// note remarks on something, once. Of very many notes the first are kept.
func (s *script) note(line int, path, message string) {
	n := job.Note{Path: path, Message: message}
	if line > 0 {
		n.Path = fmt.Sprintf("%s (line %d)", path, line)
	}
	if len(s.notes) < document.MaxProblems && !slices.Contains(s.notes, n) {
		s.notes = append(s.notes, n)
	}
}

// container decides on the image and where the script's mails go.
func (s *script) container() {
	image := cmp.Or(s.o.Image, s.image, s.o.DefaultImage)
	if image == "" && !s.noImage {
		s.spec.Gbatch.ImageAlias = siteImage
	}
	s.spec.Request.Docker.Image = Image(image)
	s.mails()
}

// siteImage is the name that the site's image for batch scripts has in its table.
const siteImage = "slurm"

// Image turns enroot's REGISTRY#IMAGE into REGISTRY/IMAGE.
func Image(s string) string {
	s = strings.TrimPrefix(s, "docker://")
	if i := strings.IndexByte(s, '#'); i > 0 {
		return s[:i] + "/" + s[i+1:]
	}
	return s
}

// result checks the job by the native rules and returns it.
func (s *script) result() (job.Submission, error) {
	if len(s.problems) > 0 {
		// In the order of the script; what is about all of it comes last.
		slices.SortStableFunc(s.problems, func(a, b job.Problem) int { return cmp.Compare(uint(a.Line-1), uint(b.Line-1)) })
		return job.Submission{}, s.problems
	}
	sub := job.Submission{Spec: s.spec}
	if r, creds, err := ref.Parse(s.spec.Request.Docker.Image); err == nil && s.spec.Request.Docker.Image != "" { // a bad one is explained by finish
		sub.Spec.Request.Docker.Image, sub.Registry = r.String(), creds
	}
	sub, err := foreign.New().Finish(sub)
	if err == nil {
		sub.Notes = append(s.notes, sub.Notes...)
	}
	return sub, err
}
