package nvct

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/foreign"
	"gbatch/internal/job/words"
)

// readArgs splits the arguments of the image's ENTRYPOINT. No shell sees them.
func readArgs(d *decoder, n *node, t *task, s string) {
	words, err := words.Split(s)
	if err != nil {
		d.Problem(n, err.Error(), "")
		return
	}
	t.sub.Spec.Request.Docker.Command = job.Command{Argv: words}
	d.Becomes("request.docker.command", n)
}

// variable is a variable of containerEnvironment.
type variable struct {
	key, value     string
	keyAt, valueAt *node
}

var variableFields = []field[variable]{
	{"key", func(d *decoder, n *node, v *variable) { v.key, _ = d.Str(n); v.keyAt = n }, true},
	{"value", func(d *decoder, n *node, v *variable) { v.value, _ = d.Str(n); v.valueAt = n }, true},
}

func readEnvironment(d *decoder, n *node, t *task) {
	env := map[string]string{}
	d.Elements(n, func(n *node) {
		var v variable
		if !document.Object(d, n, variableFields, &v) || v.keyAt == nil || v.valueAt == nil || d.Bad(v.keyAt) {
			return
		}
		_, twice := env[v.key]
		switch {
		case !document.IsName(v.key, "_", len(v.key)):
			d.Problem(v.keyAt, fmt.Sprintf("is %s: want letters, digits and _, the first a letter or digit", document.Quote(v.key)), "")
		case strings.HasPrefix(v.key, "NVCT_"):
			d.Problem(v.keyAt, fmt.Sprintf("is %s: names that start with NVCT_ are set by the system", document.Quote(v.key)), "")
		case twice:
			d.Problem(v.keyAt, fmt.Sprintf("is %s, which is given twice", document.Quote(v.key)), "keep one of them")
		case !d.Bad(v.valueAt) && strings.TrimSpace(v.value) == "":
			d.Problem(v.valueAt, "must not be blank", "remove the variable")
		}
		env[v.key] = v.value
		d.Becomes(document.Member("request.docker.environment", v.key), v.keyAt)
	})
	if len(env) > 0 {
		t.sub.Spec.Request.Docker.Environment = env
	}
	d.Becomes("request.docker.environment", n)
}

// secret is an entry of secrets.
type secret struct {
	name, value string
	nameAt      *node
}

var secretFields = []field[secret]{
	{"name", func(d *decoder, n *node, s *secret) { s.name, _ = d.Str(n); s.nameAt = n }, true},
	{"value", func(d *decoder, n *node, s *secret) {
		switch n.Kind {
		case document.StringKind:
			s.value = n.Text
		case document.ObjectKind:
			s.value = compactJSON(n)
		default:
			d.WrongKind(n, "a string or an object") // and never what it is: it may be a password
		}
		if wrong := job.SecretValue(s.value); wrong != "" && !d.Bad(n) {
			d.Problem(n, wrong, "")
		}
	}, true},
}

// readSecrets reads entries with a name and a value, or NAME=VALUE as the
// command line has it. No message quotes a value.
func readSecrets(d *decoder, n *node, t *task) {
	g := t.sub.Spec.Gbatch
	d.Becomes("gbatch.secrets", n)
	at := map[string]bool{}
	d.Elements(n, func(n *node) {
		s := secret{nameAt: n}
		if n.Kind == document.StringKind {
			var given bool
			if s.name, s.value, given = strings.Cut(n.Text, "="); !given || s.value == "" {
				d.Problem(n, "is no secret", `write { "name": "NAME", "value": "..." } or "NAME=VALUE"`)
				return
			}
		} else if !document.Object(d, n, secretFields, &s) || s.nameAt == n || d.Bad(s.nameAt) {
			return
		}
		if wrong := job.SecretName(s.name); wrong != "" {
			d.Problem(s.nameAt, wrong, "")
			return
		}
		if at[s.name] {
			d.Problem(s.nameAt, fmt.Sprintf("is %s, which is given twice", document.Quote(s.name)), "keep one of them")
			return
		}
		at[s.name] = true
		d.Becomes(fmt.Sprintf("gbatch.secrets[%d]", len(g.Secrets)), n)
		g.Secrets = append(g.Secrets, job.Secret{Name: s.name})
		foreign.Set(&t.sub.Secrets, s.name, s.value)
	})
}

// compactJSON writes a value as JSON without blanks.
func compactJSON(n *node) string {
	var parts []string
	text := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	switch n.Kind {
	case document.NullKind:
		return "null"
	case document.StringKind:
		return text(n.Text)
	case document.ArrayKind:
		for _, kid := range n.Kids {
			parts = append(parts, compactJSON(kid))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case document.ObjectKind:
		for _, kid := range n.Kids {
			parts = append(parts, text(kid.Key)+":"+compactJSON(kid))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	return n.Text
}

// artifact is an entry of models or resources.
type artifact struct {
	name, uri     string
	nameAt, uriAt *node
}

var artifactFields = []field[artifact]{
	{"name", func(d *decoder, n *node, a *artifact) { a.name, _ = d.Str(n); a.nameAt = n }, true},
	{"version", func(d *decoder, n *node, _ *artifact) {
		if _, ok := d.Scalar(n); ok {
			d.Note(n, "is not used: the uri says which version is fetched")
		}
	}, false},
	{"uri", func(d *decoder, n *node, a *artifact) { a.uri, _ = d.Str(n); a.uriAt = n }, true},
}

// readArtifacts reads what is fetched before the program starts. Each artifact
// has a directory of its own below dir.
func (t *task) readArtifacts(d *decoder, n *node, dir string) {
	g := t.sub.Spec.Gbatch
	at := map[string]bool{}
	d.Elements(n, func(n *node) {
		var a artifact
		if !document.Object(d, n, artifactFields, &a) || a.nameAt == nil || a.uriAt == nil || d.Bad(a.nameAt) || d.Bad(a.uriAt) {
			return
		}
		switch {
		case !document.IsName(a.name, "._-", 128):
			d.Problem(a.nameAt, fmt.Sprintf("is %s: want 1 to 128 letters, digits and . _ -, the first a letter or digit", document.Quote(a.name)), "")
			return
		case at[a.name]:
			d.Problem(a.nameAt, fmt.Sprintf("is %s, which is given twice", document.Quote(a.name)), "keep one of them")
			return
		case !strings.Contains(a.uri, "://"):
			d.Problem(a.uriAt, fmt.Sprintf("is %s, a place in NGC's registry, which gbatch does not read", document.Quote(a.uri)),
				"give the files as s3://BUCKET/PREFIX/, https://... or file:///PATH in the site's storage")
			return
		}
		at[a.name] = true
		in := job.Input{URI: a.uri, Path: dir + a.name, Cache: true}
		if !strings.HasSuffix(a.uri, "/") {
			file, _, _ := strings.Cut(a.uri, "?")
			in.Path += "/" + path.Base(file)
		}
		d.Becomes(fmt.Sprintf("gbatch.inputs[%d]", len(g.Inputs)), a.uriAt)
		g.Inputs = append(g.Inputs, in)
	})
}

// isLocation says that s is a model in NGC's registry, with or without a team.
func isLocation(s string) bool {
	parts := strings.Split(s, "/")
	wrong := func(part string) bool { return !document.IsName(part, "_.-", len(part)) }
	return (len(parts) == 2 || len(parts) == 3) && !slices.ContainsFunc(parts, wrong)
}

// applyResults saves the results directory, where that is a place that a node
// can write to.
func (t *task) applyResults(d *decoder, n *node) {
	g := t.sub.Spec.Gbatch
	if t.location == nil {
		if t.strategy == "UPLOAD" {
			d.Missing(n, "resultsLocation", "with UPLOAD, say where results go: s3://BUCKET/PREFIX/, or file:///PATH in the site's storage")
		}
		return
	}
	uri, ok := d.Str(t.location)
	switch {
	case !ok:
	case t.strategy == "NONE":
		d.Note(t.location, "is not used: resultHandlingStrategy is NONE")
	case !strings.Contains(uri, "://") && isLocation(uri):
		d.Becomes("gbatch.outputs", t.location)
		d.Note(t.location, "is a place in NGC's registry: "+job.NVCTResults+" is saved below the site's place for results instead, when the program has succeeded")
		g.Outputs = []job.Output{{Path: job.NVCTResults, URI: "results:///" + uri + "/"}}
	case !strings.Contains(uri, "://"):
		d.Problem(t.location, fmt.Sprintf("is %s, which is no place", document.Quote(uri)), "write ORG/TEAM/MODEL or ORG/MODEL, s3://BUCKET/PREFIX/, or file:///PATH in the site's storage")
	default:
		if !strings.HasSuffix(uri, "/") {
			uri += "/"
		}
		d.Becomes("gbatch.outputs", t.location)
		d.Note(t.location, job.NVCTResults+" is saved there when the program has succeeded")
		g.Outputs = []job.Output{{Path: job.NVCTResults, URI: uri}}
	}
}
