package submit

import (
	"regexp"
	"strings"
	"sync"

	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/oci/ref"
)

// exposed refuses a registry's password on the command line, where everybody on
// the machine can read it.
func (s *source) exposed() error {
	image := s.overrides.Image
	if s.nvct != nil {
		image = s.nvct.Image
	}
	if name, creds, err := ref.Parse(image); err == nil && creds != nil {
		return exit.Usagef("--image: everybody on this machine can read a registry's password on the command line; write it into the job file, and here only %s", name.Familiar())
	}
	return nil
}

// secretName is what variables that hold something secret are called.
var secretName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(^|_)(password|passwd|secret|token|api_?key|access_?key|private_?key|credentials?)s?($|_)`)
})

// warn tells of variables whose values look secret and are shown to all who may
// see the job, and on the command line to everybody here.
func (s *source) warn(a *cli.App) {
	env := s.overrides.Env
	if s.nvct != nil {
		env = s.nvct.ContainerEnv
	}
	for _, text := range env {
		if name, _, given := strings.Cut(text, "="); given && secretName().MatchString(name) {
			a.Say("note: everybody on this machine can read the value of %s on the command line, and the job shows it: use --secret %s", name, name)
		}
	}
}
