package importer

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"

	"gbatch/internal/job"
)

func (t *nvct) readImage(d *decoder, n *node) {
	if s, ok := d.str(n); ok {
		t.sub.Spec.Request.Docker.Image = s
	}
	d.becomes("request.docker.image", n)
}

// readArgs splits the arguments of the image's ENTRYPOINT. No shell sees them.
func (t *nvct) readArgs(d *decoder, n *node) {
	s, ok := d.str(n)
	if !ok {
		return
	}
	words, err := shellWords(s)
	if err != nil {
		d.problem(n, err.Error(), "")
		return
	}
	t.sub.Spec.Request.Docker.Command = job.Command{Argv: words}
	d.becomes("request.docker.command", n)
}

// nvctVariable is a variable of containerEnvironment.
type nvctVariable struct {
	key, value     string
	keyAt, valueAt *node
}

var nvctVariableFields = []field[nvctVariable]{
	{"key", func(d *decoder, n *node, v *nvctVariable) { v.key, _ = d.str(n); v.keyAt = n }, true},
	{"value", func(d *decoder, n *node, v *nvctVariable) { v.value, _ = d.str(n); v.valueAt = n }, true},
}

var nvctKey = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_]*$`)

func (t *nvct) readEnvironment(d *decoder, n *node) {
	env := map[string]string{}
	d.elements(n, func(n *node) {
		var v nvctVariable
		if !object(d, n, nvctVariableFields, &v) || v.keyAt == nil || v.valueAt == nil || d.bad[v.keyAt] {
			return
		}
		_, twice := env[v.key]
		switch {
		case !nvctKey.MatchString(v.key):
			d.problem(v.keyAt, fmt.Sprintf("is %s: want letters, digits and _, the first a letter or digit", quote(v.key)), "")
		case strings.HasPrefix(v.key, "NVCT_"):
			d.problem(v.keyAt, fmt.Sprintf("is %s: names that start with NVCT_ are set by the system", quote(v.key)), "")
		case twice:
			d.problem(v.keyAt, fmt.Sprintf("is %s, which is given twice", quote(v.key)), "keep one of them")
		case !d.bad[v.valueAt] && strings.TrimSpace(v.value) == "":
			d.problem(v.valueAt, "must not be blank", "remove the variable")
		}
		env[v.key] = v.value
		d.becomes(member("request.docker.environment", v.key), v.keyAt)
	})
	if len(env) > 0 {
		t.sub.Spec.Request.Docker.Environment = env
	}
	d.becomes("request.docker.environment", n)
}

// nvctSecret is an entry of secrets.
type nvctSecret struct {
	name, value string
	nameAt      *node
}

var nvctSecretFields = []field[nvctSecret]{
	{"name", func(d *decoder, n *node, s *nvctSecret) { s.name, _ = d.str(n); s.nameAt = n }, true},
	{"value", func(d *decoder, n *node, s *nvctSecret) {
		switch n.kind {
		case stringKind:
			s.value = n.text
		case objectKind:
			s.value = compactJSON(n)
		default:
			d.wrongKind(n, "a string or an object") // and never what it is: it may be a password
		}
		if wrong := job.SecretValue(s.value); wrong != "" && !d.bad[n] {
			d.problem(n, wrong, "")
		}
	}, true},
}

// readSecrets reads entries with a name and a value, or NAME=VALUE as the
// command line has it. No message quotes a value.
func (t *nvct) readSecrets(d *decoder, n *node) {
	g := t.sub.Spec.Gbatch
	d.becomes("gbatch.secrets", n)
	at := map[string]bool{}
	d.elements(n, func(n *node) {
		s := nvctSecret{nameAt: n}
		if n.kind == stringKind {
			var given bool
			if s.name, s.value, given = strings.Cut(n.text, "="); !given || s.value == "" {
				d.problem(n, "is no secret", `write { "name": "NAME", "value": "..." } or "NAME=VALUE"`)
				return
			}
		} else if !object(d, n, nvctSecretFields, &s) || s.nameAt == n || d.bad[s.nameAt] {
			return
		}
		if wrong := job.SecretName(s.name); wrong != "" {
			d.problem(s.nameAt, wrong, "")
			return
		}
		if at[s.name] {
			d.problem(s.nameAt, fmt.Sprintf("is %s, which is given twice", quote(s.name)), "keep one of them")
			return
		}
		at[s.name] = true
		d.becomes(fmt.Sprintf("gbatch.secrets[%d]", len(g.Secrets)), n)
		g.Secrets = append(g.Secrets, job.Secret{Name: s.name})
		if t.sub.Secrets == nil {
			t.sub.Secrets = map[string]string{}
		}
		t.sub.Secrets[s.name] = s.value
	})
}

// compactJSON writes a value as JSON without blanks.
func compactJSON(n *node) string {
	var parts []string
	text := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	switch n.kind {
	case nullKind:
		return "null"
	case stringKind:
		return text(n.text)
	case arrayKind:
		for _, kid := range n.kids {
			parts = append(parts, compactJSON(kid))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case objectKind:
		for _, kid := range n.kids {
			parts = append(parts, text(kid.key)+":"+compactJSON(kid))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	return n.text
}

// nvctArtifact is an entry of models or resources.
type nvctArtifact struct {
	name, uri     string
	nameAt, uriAt *node
}

var nvctArtifactFields = []field[nvctArtifact]{
	{"name", func(d *decoder, n *node, a *nvctArtifact) { a.name, _ = d.str(n); a.nameAt = n }, true},
	{"version", func(d *decoder, n *node, _ *nvctArtifact) {
		if _, ok := d.scalar(n); ok {
			d.note(n, "is not used: the uri says which version is fetched")
		}
	}, false},
	{"uri", func(d *decoder, n *node, a *nvctArtifact) { a.uri, _ = d.str(n); a.uriAt = n }, true},
}

var nvctArtifactName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// readArtifacts reads what is fetched before the program starts. Each artifact
// has a directory of its own below dir.
func (t *nvct) readArtifacts(d *decoder, n *node, dir string) {
	g := t.sub.Spec.Gbatch
	at := map[string]bool{}
	d.elements(n, func(n *node) {
		var a nvctArtifact
		if !object(d, n, nvctArtifactFields, &a) || a.nameAt == nil || a.uriAt == nil || d.bad[a.nameAt] || d.bad[a.uriAt] {
			return
		}
		switch {
		case !nvctArtifactName.MatchString(a.name):
			d.problem(a.nameAt, fmt.Sprintf("is %s: want 1 to 128 letters, digits and . _ -, the first a letter or digit", quote(a.name)), "")
			return
		case at[a.name]:
			d.problem(a.nameAt, fmt.Sprintf("is %s, which is given twice", quote(a.name)), "keep one of them")
			return
		case !strings.Contains(a.uri, "://"):
			d.problem(a.uriAt, fmt.Sprintf("is %s, a place in NGC's registry, which gbatch does not read", quote(a.uri)),
				"give the files as s3://BUCKET/PREFIX/, https://... or file:///PATH in the site's storage")
			return
		}
		at[a.name] = true
		in := job.Input{URI: a.uri, Path: dir + a.name, Cache: true}
		if !strings.HasSuffix(a.uri, "/") {
			file, _, _ := strings.Cut(a.uri, "?")
			in.Path += "/" + path.Base(file)
		}
		d.becomes(fmt.Sprintf("gbatch.inputs[%d]", len(g.Inputs)), a.uriAt)
		g.Inputs = append(g.Inputs, in)
	})
}

// nvctLocation is a model in NGC's registry, with or without a team.
var nvctLocation = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*/([A-Za-z0-9][A-Za-z0-9_.-]*/)?[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// applyResults saves the results directory, where that is a place that a node
// can write to.
func (t *nvct) applyResults(d *decoder, n *node) {
	g := t.sub.Spec.Gbatch
	if t.location == nil {
		if t.strategy == "UPLOAD" {
			d.missing(n, "resultsLocation", "with UPLOAD, say where results go: s3://BUCKET/PREFIX/, or file:///PATH in the site's storage")
		}
		return
	}
	uri, ok := d.str(t.location)
	switch {
	case !ok:
	case t.strategy != "UPLOAD":
		d.note(t.location, "is not used: results are uploaded only if resultHandlingStrategy is UPLOAD, and it is NONE if left out")
	case !strings.Contains(uri, "://") && nvctLocation.MatchString(uri):
		d.becomes("gbatch.outputs", t.location)
		d.note(t.location, "is a place in NGC's registry: "+job.NVCTResults+" is saved below the site's place for results instead, when the program has succeeded")
		g.Outputs = []job.Output{{Path: job.NVCTResults, URI: "results:///" + uri + "/"}}
	case !strings.Contains(uri, "://"):
		d.problem(t.location, fmt.Sprintf("is %s, which is no place", quote(uri)), "write ORG/TEAM/MODEL or ORG/MODEL, s3://BUCKET/PREFIX/, or file:///PATH in the site's storage")
	default:
		if !strings.HasSuffix(uri, "/") {
			uri += "/"
		}
		d.becomes("gbatch.outputs", t.location)
		d.note(t.location, job.NVCTResults+" is saved there when the program has succeeded")
		g.Outputs = []job.Output{{Path: job.NVCTResults, URI: uri}}
	}
}
