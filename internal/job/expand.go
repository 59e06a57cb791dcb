package job

import "strings"

// Expand replaces each $(NAME) of a text by a value, as Kubernetes does: $$ is a $,
// and what has no value stays.
func Expand(text string, value func(name string) (string, bool)) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "$")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		name, after, closed := strings.Cut(rest, ")")
		switch {
		case strings.HasPrefix(rest, "$"):
			out.WriteByte('$')
			text = rest[1:]
		case closed && strings.HasPrefix(name, "("):
			if v, ok := value(name[1:]); ok {
				out.WriteString(v)
				text = after
				continue
			}
			fallthrough
		default:
			out.WriteByte('$')
			text = rest
		}
	}
}

// ExpandWords is a job's command with $(NAME) replaced by what is in its environment,
// where the job asks for that.
func ExpandWords(s *Spec, words, env []string) []string {
	if !s.gbatch().ExpandVariables {
		return words
	}
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = Expand(w, lookup(env))
	}
	return out
}

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
