package job

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
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

// MaxSecretsBytes bounds the values of one job's secrets together.
const MaxSecretsBytes = 512 << 10

// SecretsDir is where a container finds its secrets: each in a file of its
// name, and all of them in SecretsFileName.
const (
	SecretsDir      = "/var/secrets"
	secretsFileName = "secrets.json"
)

// CheckSecrets reports each secret that has no value or one that cannot be
// used, and values that are too much together. No text quotes a value.
func (s *Spec) CheckSecrets(values map[string]string) error {
	var ps Problems
	total := 0
	for i, d := range s.gbatch().Secrets {
		total += len(values[d.Name])
		path := fmt.Sprintf("gbatch.secrets[%d]", i)
		if _, ok := values[d.Name]; !ok {
			ps = append(ps, Problem{Path: path, Message: fmt.Sprintf("secret %s has no value", d.Name),
				Hint: "give it with gsubmit --secret " + d.Name + ", which takes it from the environment, or --secret " + d.Name + "@FILE"})
		} else if wrong := SecretValue(values[d.Name]); wrong != "" {
			ps = append(ps, Problem{Path: path, Message: "secret " + d.Name + ": its value " + wrong})
		}
	}
	ps = append(ps, s.checkKeys(values)...)
	if total > MaxSecretsBytes {
		ps = append(ps, Problem{Path: "gbatch.secrets", Message: fmt.Sprintf("have %d bytes together, a job may have at most %d", total, MaxSecretsBytes),
			Hint: "put data into project storage, or into an input"})
	}
	if len(ps) > 0 {
		return ps
	}
	return nil
}

// checkKeys looks for the secrets that gbatch.s3 names.
func (s *Spec) checkKeys(values map[string]string) (ps Problems) {
	at := s.gbatch().S3
	if at == nil {
		return nil
	}
	for _, key := range []struct{ field, name string }{
		{"accessKeySecret", at.AccessKey}, {"secretKeySecret", at.SecretKey}, {"sessionTokenSecret", at.SessionToken},
	} {
		if _, ok := values[key.name]; !ok && key.name != "" {
			ps = append(ps, Problem{Path: "gbatch.s3." + key.field, Message: "names secret " + key.name + ", which the job does not have",
				Hint: "give it with gsubmit --secret " + key.name})
		}
	}
	return ps
}

// SetSecrets adds values to a submission, and their names to the document
// where it does not have them. Names and values are checked with the rest.
func (s *Submission) SetSecrets(values map[string]string) {
	if len(values) == 0 {
		return
	}
	g := s.Spec.gbatch()
	g.Secrets = slices.Clone(g.Secrets)
	all := map[string]string{}
	maps.Copy(all, s.Secrets)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.ContainsFunc(g.Secrets, func(x Secret) bool { return x.Name == name }) {
			g.Secrets = append(g.Secrets, Secret{Name: name})
		}
		all[name] = values[name]
	}
	s.Spec.Gbatch, s.Secrets = &g, all
}

// SecretEnvironment is the secrets as NAME=value, by name: those whose name can
// be a variable's and is not one of gbatch's own.
func SecretEnvironment(values map[string]string) []string {
	var env []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if variableName(name) == "" {
			env = append(env, name+"="+values[name])
		}
	}
	return env
}

// SecretFiles are the files of SecretsDir by name. In SecretsFileName a value
// that is a JSON object stands as one, and any other as a string.
func SecretFiles(values map[string]string) map[string][]byte {
	files, object := map[string][]byte{}, map[string]json.RawMessage{}
	for name, v := range values {
		files[name] = []byte(v)
		raw := json.RawMessage(v)
		if !strings.HasPrefix(strings.TrimSpace(v), "{") || !json.Valid(raw) {
			raw, _ = json.Marshal(v) // a string always encodes
		}
		object[name] = raw
	}
	all, _ := json.MarshalIndent(object, "", "  ") // what is in it was valid by itself
	files[secretsFileName] = append(all, '\n')
	return files
}
