package job

import (
	"fmt"
	"strings"

	"gbatch/internal/document"
)

// Secret is the name of a value that the program gets, as a variable and in
// /var/secrets/secrets.json. The value is split off when the document is read:
// see Submission.Secrets.
type Secret struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"` // in Submission.Document only
}

const (
	MaxSecrets     = 100 // of one job
	maxSecretBytes = 32 << 10
)

var secretFields = []field[Secret]{
	{"name", func(d *decoder, n *node, s *Secret) { d.str(n, &s.Name, SecretName) }, true},
	{"value", func(d *decoder, n *node, s *Secret) {
		if n.Kind != document.StringKind {
			d.WrongKind(n, "a string") // and never what it is: it may be a password
			return
		}
		if wrong := SecretValue(n.Text); wrong != "" {
			d.Problem(n, wrong, "")
			return
		}
		s.Value = strings.Clone(n.Text)
	}, false},
}

// SecretName says what is wrong with a secret's name, or "".
func SecretName(s string) string {
	if !document.IsName(s, "_.-", 48) {
		return fmt.Sprintf("is %s: a secret's name has 1 to 48 letters, digits and _ . -, and starts with a letter or digit", document.Quote(s))
	}
	return ""
}

// SecretValue says what is wrong with a secret's value without quoting it, or "".
func SecretValue(s string) string {
	switch {
	case s == "":
		return "must not be empty"
	case len(s) > maxSecretBytes:
		return fmt.Sprintf("has %d bytes, a secret may have at most %d", len(s), maxSecretBytes)
	case strings.IndexByte(s, 0) >= 0:
		return "must not contain a zero byte"
	}
	return ""
}

// readSecrets splits the values off; a secret without one is given when the job
// is submitted (gsubmit --secret).
func readSecrets(d *decoder, n *node, g *Gbatch) {
	at := map[string]int{}
	d.elements(n, MaxSecrets, func(i int, n *node) {
		var s Secret
		if n.Kind == document.StringKind {
			d.str(n, &s.Name, SecretName)
		} else if !document.Object(d, n, secretFields, &s) {
			return
		}
		if first, ok := at[s.Name]; ok && s.Name != "" {
			d.Problem(n, fmt.Sprintf("is secret %s, as entry [%d] is", document.Quote(s.Name), first), "give each name once")
			return
		}
		at[s.Name] = i
		g.Secrets = append(g.Secrets, Secret{Name: s.Name})
		if s.Value != "" {
			if d.secrets == nil {
				d.secrets = map[string]string{}
			}
			d.secrets[s.Name] = s.Value
		}
	})
}
