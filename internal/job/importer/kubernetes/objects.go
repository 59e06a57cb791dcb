package kubernetes

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"

	"gbatch/internal/document"
)

// objects are config maps and secrets that come with the job, by name: what a job
// refers to of others is not known here.
type objects struct {
	maps    map[string]*keys
	secrets map[string]*keys
}

// keys are the entries of one config map or secret, in the order of the file.
type keys struct {
	names  []string
	values map[string]string
}

func (k *keys) set(name, value string) {
	if _, had := k.values[name]; !had {
		k.names = append(k.names, name)
	}
	k.values[name] = value
}

// unused are kinds of objects that come along with jobs and change nothing here.
var unused = map[string]string{
	"Namespace":             "is not used: the job is billed to a project, which gsubmit --project names",
	"ServiceAccount":        noAPI,
	"Role":                  noAPI,
	"RoleBinding":           noAPI,
	"ClusterRole":           noAPI,
	"ClusterRoleBinding":    noAPI,
	"PersistentVolume":      "is not used: volumes are directories of the site's storage",
	"PersistentVolumeClaim": "is not used: a claim is the directory of its name in the project's storage",
	"StorageClass":          "is not used: volumes are directories of the site's storage",
	"PriorityClass":         "is not used: the site has its own classes of service",
	"Service":               "is not used: people reach a port of the running job with gexec --forward",
	"LocalQueue":            kueue,
	"ClusterQueue":          kueue,
	"ResourceFlavor":        kueue,
}

const kueue = "is not used: gbatch itself queues the job, by the share of its project"

// parts are the documents of a YAML text. Each has as many empty lines in front that
// its lines have the numbers of the whole.
func parts(data []byte) [][]byte {
	separator := regexp.MustCompile(`(?m)^---([ \t].*)?$`)
	text := string(data)
	var list [][]byte
	start := 0
	add := func(end int) {
		part := text[start:end]
		if strings.TrimSpace(part) != "" {
			list = append(list, []byte(strings.Repeat("\n", strings.Count(text[:start], "\n"))+part))
		}
	}
	for _, at := range separator.FindAllStringIndex(text, -1) {
		add(at[0])
		start = at[1]
	}
	add(len(text))
	return list
}

// takeObject reads what lies beside the job: true, it is no job.
func (k *manifest) takeObject(d *decoder, n *node) bool {
	kind := ""
	if x := n.Given("kind"); x != nil && x.Kind == document.StringKind {
		kind = x.Text
	}
	to := map[string]map[string]*keys{"ConfigMap": k.beside.maps, "Secret": k.beside.secrets}[kind]
	switch {
	case kind == "Job" || kind == "CronJob":
		return false
	case to == nil && unused[kind] != "":
		d.Note(n.Given("kind"), kind+" "+unused[kind])
		return true
	case to == nil:
		return false // the job's own reader says what it wants
	}
	o := &object{keys: keys{values: map[string]string{}}}
	if document.Object(d, n, objectFields(kind), o) && o.name != "" {
		if to[o.name] != nil {
			d.Problem(n, fmt.Sprintf("is the second %s %s", kind, document.Quote(o.name)), "keep one of them")
		}
		to[o.name] = &o.keys
	}
	return true
}

type object struct {
	keys
	name string
}

func objectFields(kind string) []field[object] {
	nothing := func(*decoder, *node, *object) {}
	return []field[object]{
		{"apiVersion", func(d *decoder, n *node, _ *object) { d.OneOf(n, "v1") }, true},
		{"kind", nothing, true},
		{"metadata", func(d *decoder, n *node, o *object) {
			if x := n.Given("name"); x != nil {
				o.name, _ = d.Str(x)
			} else {
				d.Missing(n, "name", "")
			}
		}, true},
		{"data", func(d *decoder, n *node, o *object) { readData(d, n, o, kind == "Secret") }, false},
		{"stringData", func(d *decoder, n *node, o *object) {
			if kind != "Secret" {
				d.Problem(n, "is a key of secrets", "write data")
			}
			readData(d, n, o, false)
		}, false},
		{"binaryData", func(d *decoder, n *node, o *object) { readData(d, n, o, true) }, false},
		{"type", nothing, false},
		{"immutable", nothing, false},
	}
}

// readData reads the entries, which may be in base64. What a secret is is not told.
func readData(d *decoder, n *node, o *object, encoded bool) {
	if n.Kind != document.ObjectKind {
		d.WrongKind(n, "an object")
		return
	}
	for _, kid := range n.Kids {
		if kid.Kind != document.StringKind {
			d.WrongKind(kid, "a string")
			continue
		}
		value := kid.Text
		if encoded {
			b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(value), ""))
			if err != nil {
				d.Problem(kid, "is not in base64", "in a secret plain text belongs into stringData")
				continue
			}
			value = string(b)
		}
		o.set(strings.Clone(kid.Key), strings.Clone(value))
	}
}
