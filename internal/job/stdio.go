package job

import (
	"path"
	"strconv"
	"strings"

	"gbatch/internal/document"
)

// Stdio are files that the program's standard input comes from and its output
// goes to, beside the log. They lie below storage that the job mounts, and are
// read and written with the user's rights. Names may have Slurm's patterns; see
// stdioName. Of a gang, they are the first rank's.
type Stdio struct {
	Output string `json:"output,omitempty"`
	Error  string `json:"error,omitempty"` // empty: where the output goes
	Input  string `json:"input,omitempty"`
	Append bool   `json:"append,omitempty"` // what is in the files stays
}

var stdioFields = []field[Stdio]{
	{"output", func(d *decoder, n *node, s *Stdio) { d.str(n, &s.Output, stdioPath) }, false},
	{"error", func(d *decoder, n *node, s *Stdio) { d.str(n, &s.Error, stdioPath) }, false},
	{"input", func(d *decoder, n *node, s *Stdio) { d.str(n, &s.Input, stdioPath) }, false},
	{"append", func(d *decoder, n *node, s *Stdio) { d.boolean(n, &s.Append) }, false},
}

func readStdio(d *decoder, n *node, g *Gbatch) {
	s := &Stdio{}
	if !document.Object(d, n, stdioFields, s) {
		return
	}
	if s.Append && s.Output == "" && s.Error == "" {
		d.ProblemAt(n, "append", "is about files that output goes to, and none is named", "name one, or remove it")
	}
	if !empty(*s) {
		g.Stdio = s
	}
}

func stdioPath(s string) string { return plain(1, maxPathBytes)(s) }

// StdioFile is a file of Stdio, as a place in storage.
type StdioFile struct {
	Path  string  // in the container; empty: none is named, or it is /dev/null
	Mount Storage // that it lies below; its HostPath is empty where it lies below none
	Rest  string  // the way from there
}

// Reached says whether the file lies below storage.
func (f StdioFile) Reached() bool { return f.Mount.HostPath != "" }

// StdioFiles says where a rank's files are.
func StdioFiles(in EnvInput) (output, errors, input StdioFile) {
	s := in.Spec.gbatch().Stdio
	if s == nil || in.ID.Rank > 0 {
		return output, errors, input
	}
	place := func(pattern string) StdioFile { return in.Spec.stdioFile(stdioName(pattern, in)) }
	output, errors, input = place(s.Output), place(s.Error), place(s.Input)
	if errors.Path == output.Path {
		errors = StdioFile{}
	}
	return output, errors, input
}

func (s *Spec) stdioFile(name string) StdioFile {
	docker := &s.Request.Docker
	if name == "" {
		return StdioFile{}
	}
	if !path.IsAbs(name) {
		name = path.Join("/", docker.WorkingDir, name)
	}
	f := StdioFile{Path: path.Clean(name)}
	if f.Path == "/dev/null" {
		return StdioFile{}
	}
	if m, ok := s.mountOf(f.Path); ok && m.HostPath != TmpfsHostPath && m.HostPath != ScratchHostPath {
		f.Mount, f.Rest = m, strings.TrimPrefix(strings.TrimPrefix(f.Path, m.ContainerPath), "/")
	}
	return f
}

// mountOf is the mount that a path in the container lies below, if there is one.
func (s *Spec) mountOf(p string) (Storage, bool) {
	best := -1
	all := s.Request.Docker.Storage
	for i, m := range all {
		if under(p, m.ContainerPath) && (best < 0 || len(m.ContainerPath) > len(all[best].ContainerPath)) {
			best = i
		}
	}
	if best < 0 {
		return Storage{}, false
	}
	return all[best], true
}

// Reaches says whether a path in the container is, or lies below, storage of the site's.
func (s *Spec) Reaches(p string) bool {
	m, ok := s.mountOf(p)
	return ok && m.HostPath != TmpfsHostPath
}

// Bounds of what Slurm's patterns may become.
const (
	maxStdioWidth = 10
	NoArrayTask   = "4294967294" // what Slurm prints where there is none
)

// stdioName fills in Slurm's patterns: %j job, %A array's job, %a index, %b the
// index's last digit, %x name, %u user, %N node, %n rank, %t task, %s step, %J job
// and step, %% itself; a number between fills up with zeros. What is none of
// these stays, and in a name with a backslash nothing is replaced.
func stdioName(pattern string, in EnvInput) string { return ExpandStdio(pattern, in.stdioValue) }

// ExpandStdio replaces the letters behind % by what value has for them; empty:
// the letter stands for nothing, and stays. Numbers are filled up to a width.
func ExpandStdio(pattern string, value func(letter byte) (text string, number bool)) string {
	if strings.Contains(pattern, `\`) {
		return strings.ReplaceAll(pattern, `\`, "")
	}
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '%' {
			b.WriteByte(pattern[i])
			continue
		}
		end := i + 1
		for end < len(pattern) && pattern[end] >= '0' && pattern[end] <= '9' {
			end++
		}
		if end == len(pattern) {
			b.WriteString(pattern[i:])
			break
		}
		text, number := value(pattern[end])
		if text == "" {
			b.WriteString(pattern[i : end+1])
		} else {
			if width, _ := strconv.Atoi(pattern[i+1 : end]); number && end > i+1 {
				text = strings.Repeat("0", max(0, min(width, maxStdioWidth)-len(text))) + text
			}
			b.WriteString(text)
		}
		i = end
	}
	return b.String()
}

// stdioValue is what a letter stands for; empty: nothing. No slash comes in by it.
func (in EnvInput) stdioValue(letter byte) (text string, number bool) {
	number0, array, index := formatUint(uint64(in.ID.Job)), formatUint(uint64(in.ID.Job)), NoArrayTask
	if a := in.Array; a != nil {
		array, index = formatUint(uint64(a.Parent)), strconv.Itoa(a.Index)
	}
	switch letter {
	case 'j', 'J':
		return number0, true
	case 'A':
		return array, true
	case 'a':
		return index, true
	case 'b':
		if in.Array == nil {
			return "4", true // of that number
		}
		return strconv.Itoa(in.Array.Index % 10), true
	case 'n', 't':
		return "0", true
	case 's':
		return "batch", false
	case 'x':
		return strings.ReplaceAll(in.Spec.Name, "/", "_"), false
	case 'u':
		return strings.ReplaceAll(in.User, "/", "_"), false
	case 'N':
		return in.Node, false
	case '%':
		return "%", false
	}
	return "", false
}
