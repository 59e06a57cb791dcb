package job

import (
	"strings"

	"gbatch/internal/job/expand"
)

// ExpandWords is a job's command with $(NAME) replaced by what is in its environment,
// where the job asks for that. In place of a secret there is a mark.
func ExpandWords(s *Spec, words, env []string) []string {
	if !s.gbatch().ExpandVariables {
		return words
	}
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = expand.Variables(w, told(s, env))
	}
	return out
}

// told finds what a job is told by a name: a variable, or one of its secrets, in whose
// place there is a mark. The value takes it where the container begins.
func told(s *Spec, env []string) func(string) (string, bool) {
	variable := lookup(env)
	return func(name string) (string, bool) {
		for _, secret := range s.gbatch().Secrets {
			if secret.Name == name && variableName(name) == "" {
				return SecretMark(name), true
			}
		}
		return variable(name)
	}
}

// SecretMark stands for a secret's value in a command or variable: see oci/handed.Handover.
func SecretMark(name string) string { return "\uE000" + name + "\uE001" }

// lookup finds a variable, the last of its name.
func lookup(env []string) func(string) (string, bool) {
	values := map[string]string{}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		values[name] = value
	}
	return func(name string) (string, bool) {
		v, ok := values[name]
		return v, ok
	}
}
