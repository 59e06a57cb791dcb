// Package expand puts values into texts that name them as Kubernetes does. It is pure.
package expand

import "strings"

// Variables replaces each $(NAME) of a text by a value, as Kubernetes does: $$ is a $,
// and what has no value stays.
func Variables(text string, value func(name string) (string, bool)) string {
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
