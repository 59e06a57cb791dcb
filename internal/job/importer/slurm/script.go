package slurm

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"

	"gbatch/internal/job"
	"gbatch/internal/job/importer/foreign"
)

// body makes the script the job's command: a file in the container, as it is.
func (s *script) body(text string) {
	text = strings.TrimPrefix(text, "\ufeff")
	first, _, _ := strings.Cut(text, "\n")
	words := strings.Fields(strings.TrimPrefix(first, "#!"))
	switch {
	case !strings.HasPrefix(first, "#!") || len(words) == 0:
		s.problem(1, "", "does not begin with #! and an interpreter, without which Slurm refuses it too", "begin it with #!/bin/bash")
		return
	case strings.Contains(text, "\r\n"):
		s.problem(0, "", "has line ends of Windows, which Slurm refuses too", "convert it with dos2unix")
		return
	}
	program := words[0]
	if path.Base(program) == "env" {
		words = slices.DeleteFunc(words[1:], func(w string) bool { return strings.HasPrefix(w, "-") })
		program = strings.Join(words[:min(1, len(words))], "")
	}
	if foreign.IsPOSIXShell(program) && len(text) <= maxRead {
		s.lookThrough(text)
	}
	l := s.spec.Gbatch.Launch
	l.Script, l.Directory, l.Host, l.File = text, s.o.Directory, s.o.Host, s.file()
	argv := append(interpreter(first), job.ScriptPath)
	if s.entrypoint {
		s.spec.Request.Docker.Command = job.Command{Argv: append(argv, s.o.Args...)}
		return
	}
	s.spec.Gbatch.Entrypoint = argv
	s.spec.Request.Docker.Command = job.Command{Argv: s.o.Args}
}

// file is the script's path as Slurm tells it: below the directory that it was
// submitted from, but for what says itself where it begins. A path that no document
// may have is not told, as the job does not need it.
func (s *script) file() string {
	file := s.o.File
	if file != "" && !strings.HasPrefix(file, "/") && !strings.HasPrefix(file, ".") && s.o.Directory != "" {
		file = path.Join(s.o.Directory, file)
	}
	if strings.TrimSpace(file) == "" || len(file) > job.MaxLaunchFile || strings.ContainsFunc(file, unicode.IsControl) {
		return ""
	}
	return file
}

// interpreter takes a first line apart as the kernel does, which gives all that
// follows the program to it as one argument. With the program in front it is
// told by its name if the image has it not.
func interpreter(first string) []string {
	program, rest, _ := strings.Cut(strings.ReplaceAll(strings.TrimSpace(strings.TrimPrefix(first, "#!")), "\t", " "), " ")
	argv := []string{program}
	if rest = strings.TrimSpace(rest); rest != "" {
		argv = append(argv, rest)
	}
	return argv
}

// maxRead bounds what is looked into: the time that takes grows with the square
// of the nesting.
const maxRead = 128 << 10

var foreignCommands = map[string]string{
	"module":      "which the image must have: environment modules are the machine's, and the container has its image's software",
	"ml":          "which the image must have: environment modules are the machine's, and the container has its image's software",
	"singularity": "which the image must have: name the image with --image, and call the program itself",
	"apptainer":   "which the image must have: name the image with --image, and call the program itself",
	"docker":      "which the image must have: name the image with --image, and call the program itself",
}

// lookThrough remarks on commands that belong to the machine and not to the
// container.
func (s *script) lookThrough(script string) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil {
		s.note(0, "script", "could not be read as a shell program: "+err.Error())
		return
	}
	known := constantsOf(file)
	syntax.Walk(file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		switch name := call.Args[0].Lit(); {
		case name == "srun":
			s.srunOptions(call, known)
		case foreignCommands[name] != "":
			s.note(int(call.Pos().Line()), "script", "calls "+name+", "+foreignCommands[name])
		}
		return true
	})
}
