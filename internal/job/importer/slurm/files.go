package slurm

import (
	"errors"
	"path"
	"strings"
)

// files decides where the script's output goes: below the directory that it
// begins in, which is the one that it was submitted from.
func (s *script) files() {
	s.place()
	if s.stdio.Output == "" {
		s.stdio.Output = "slurm-%j.out"
		if s.spec.Gbatch.Tasks != nil {
			s.stdio.Output = "slurm-%A_%a.out"
		}
	}
	s.spec.Gbatch.Stdio = &s.stdio
}

// place decides where the program begins, if that was said.
func (s *script) place() {
	docker := &s.spec.Request.Docker
	if dir := s.workDir; dir != "" {
		switch {
		case path.IsAbs(dir):
			docker.WorkingDir = path.Clean(dir)
		case s.o.Directory != "":
			docker.WorkingDir = path.Join(s.o.Directory, dir)
		default:
			s.problem(0, "--chdir", "is below the directory that the script is submitted from, which is not known", "write the whole path")
		}
	}
}

// fileOption keeps the name of a file.
func fileOption(to func(*script) *string) func(*script, string) error {
	return func(s *script, v string) error {
		*to(s) = v
		return nil
	}
}

func (s *script) openMode(v string) error {
	switch strings.ToLower(v) {
	case "append", "a":
		s.stdio.Append = true
		s.variable("SLURM_OPEN_MODE", "a")
	case "truncate", "t":
		s.stdio.Append = false
		s.variable("SLURM_OPEN_MODE", "t")
	default:
		return errors.New("want append or truncate")
	}
	return nil
}
