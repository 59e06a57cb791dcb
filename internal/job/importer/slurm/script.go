package slurm

import (
	"fmt"
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/foreign"
)

// body makes the script the job's command. It goes to its interpreter as an
// argument, since there is no file in the container.
func (s *script) body(text string) {
	interpreter, args := s.interpreter(text)
	if interpreter == "" {
		return
	}
	name := s.spec.Name
	script := strings.TrimPrefix(text, "\ufeff")
	if strings.Contains(script, "\r\n") {
		s.problem(0, "", "has line ends of Windows, which Slurm refuses too", "convert it with dos2unix")
		return
	}
	if foreign.IsPOSIXShell(interpreter) {
		s.lookThrough(script)
	}
	argv := append(args, "-c", script)
	if foreign.IsPOSIXShell(interpreter) {
		argv = append(argv, name) // $0
	}
	argv = append(argv, s.o.Args...)
	if s.entrypoint {
		s.spec.Request.Docker.Command = job.Command{Argv: append([]string{interpreter}, argv...)}
		return
	}
	s.spec.Gbatch.Entrypoint = []string{interpreter}
	s.spec.Request.Docker.Command = job.Command{Argv: argv}
}

// interpreter reads the first line. Those that take a program behind -c are
// supported.
func (s *script) interpreter(text string) (program string, args []string) {
	first, _, _ := strings.Cut(strings.TrimPrefix(text, "\ufeff"), "\n")
	line, ok := strings.CutPrefix(strings.TrimSpace(first), "#!")
	words := strings.Fields(line)
	if !ok || len(words) == 0 {
		s.problem(1, "", "does not begin with #! and an interpreter, without which Slurm refuses it too", "begin it with #!/bin/bash")
		return "", nil
	}
	if path.Base(words[0]) == "env" && len(words) > 1 {
		words = words[1:]
		if words[0] == "-S" && len(words) > 1 {
			words = words[1:]
		}
	}
	if !foreign.IsPOSIXShell(words[0]) && !strings.HasPrefix(path.Base(words[0]), "python") && path.Base(words[0]) != "fish" {
		s.problem(1, "", fmt.Sprintf("is a script for %s, which is not known to take a program as an argument", document.Quote(words[0])),
			"begin it with #!/bin/bash, and call "+path.Base(words[0])+" from there on a file in project storage")
		return "", nil
	}
	return words[0], words[1:]
}

var foreignCommands = map[string]string{
	"module":      "which the image must have: environment modules are the machine's, and the container has its image's software",
	"ml":          "which the image must have: environment modules are the machine's, and the container has its image's software",
	"sbatch":      "which the image must have: submit from outside, and let jobs wait for each other with --dependency",
	"squeue":      "which the image must have",
	"sacct":       "which the image must have",
	"scancel":     "which the image must have",
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
	syntax.Walk(file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		switch name := call.Args[0].Lit(); {
		case name == "srun":
			s.srunOptions(call)
		case foreignCommands[name] != "":
			s.note(int(call.Pos().Line()), "script", "calls "+name+", "+foreignCommands[name])
		}
		return true
	})
}

// srunOptions refuses what would be another job or another image.
func (s *script) srunOptions(call *syntax.CallExpr) {
	for _, a := range call.Args[1:] {
		w := a.Lit()
		if w == "" && len(a.Parts) > 0 {
			if lit, ok := a.Parts[0].(*syntax.Lit); ok {
				w = lit.Value
			}
		}
		if !strings.HasPrefix(w, "-") {
			return
		}
		if name, value, _ := strings.Cut(w, "="); strings.HasPrefix(name, "--image") || strings.HasPrefix(name, "--container-") {
			switch {
			case name == "--container-image" && s.image == "" && value != "":
				s.image = value
			case name == "--container-mounts" && value != "":
				if err := s.mounts(value); err != nil {
					s.problem(int(call.Pos().Line()), name, err.Error(), "")
				}
			case name == "--container-image" && Image(value) != Image(s.image) && value != "":
				s.problem(int(call.Pos().Line()), name, "of srun names another image than the job has", "submit what needs it as a job of its own, and let one depend on the other")
			}
		}
	}
}
