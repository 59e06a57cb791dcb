package kubernetes

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job/importer/kubernetes/parts"
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
	"NetworkPolicy":         "is not used: who reaches whom is the site's",
	"LimitRange":            "is not used: what a job may have is the site's",
	"ResourceQuota":         "is not used: what a project may have is the site's",
	"PodDisruptionBudget":   "is not used: what runs is ended by its owner, an operator or by preemption alone",
	"ServiceMonitor":        "is not used: the site has metrics of every job",
	"PodMonitor":            "is not used: the site has metrics of every job",
	"DeviceClass":           "is not used: a claim is read by the name of its class",
	"Workload":              together,
	"PodGroup":              together,
	"LocalQueue":            kueue,
	"ClusterQueue":          kueue,
	"ResourceFlavor":        kueue,
}

const serviceUnused = "Service is not used: people reach a port of the running job with gexec --forward"

const together = "is not used: pods of a job that find each other start together"

const kueue = "is not used: gbatch itself queues the job, by the share of its project"

// maxSplit bounds how many jobs one file may have.
const maxSplit = 250

// Split gives a file of several jobs for each of them alone, beside what is no
// job; lines keep their numbers. It gives nil for a file with one job, or which
// Parse has to explain.
func Split(data []byte) (list [][]byte) {
	text := string(data)
	all := parts.Spans(text)
	var jobs []int
	for k, at := range all {
		if parts.Nothing(text[at[0]:at[1]]) {
			continue
		}
		n, err := document.Read([]byte(text[at[0]:at[1]]))
		if err != nil {
			return nil
		}
		if isJob(n) {
			jobs = append(jobs, k)
		}
	}
	if len(jobs) < 2 || len(jobs) > maxSplit {
		return nil
	}
	for _, own := range jobs {
		var one strings.Builder
		end := 0
		for k, at := range all {
			one.WriteString(text[end:at[0]]) // what separates them
			if end = at[1]; k != own && slices.Contains(jobs, k) {
				one.WriteString(parts.EmptyLines(text[at[0]:at[1]]))
			} else {
				one.WriteString(text[at[0]:at[1]])
			}
		}
		list = append(list, []byte(one.String()))
	}
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
	case k.takeClaim(d, n, kind):
		return true
	case kind == "Service":
		if meta := n.Given("metadata"); meta != nil && meta.Given("name") != nil && meta.Given("name").Text != "" && len(k.services) < maxServices {
			k.services = append(k.services, n)
		} else {
			d.Note(n.Given("kind"), serviceUnused)
		}
		return true
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
