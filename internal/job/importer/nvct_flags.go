package importer

import (
	"slices"
	"strings"

	"gbatch/internal/job"
)

// NVCTFlags are the fields of a task that the command line gives. Each wins
// over the file's; secrets are merged by name.
type NVCTFlags struct {
	Name, Description     string
	GPU, InstanceType     string
	Backend               string
	Clusters              []string
	Image, ContainerArgs  string
	ContainerEnv          []string // KEY=VALUE
	HelmChart             string
	MaxRuntime, MaxQueued string
	TerminationGrace      string
	ResultStrategy        string
	ResultsLocation       string
	Models, Resources     []string // NAME:VERSION:URI
	Secrets               []string // NAME=VALUE
	Tags                  []string
	LogsTelemetryID       string
	MetricsTelemetryID    string
	TracesTelemetryID     string
}

// ParseNVCT reads a task from a file, which may be empty, and flags.
func ParseNVCT(data []byte, f NVCTFlags) (job.Submission, error) {
	n := &node{kind: objectKind}
	if len(data) > 0 {
		var err error
		if n, err = readTree(data); err != nil {
			return job.Submission{}, err
		}
	}
	if n.kind == objectKind {
		f.overlay(n)
	}
	return nvctTask(n)
}

func (f NVCTFlags) overlay(n *node) {
	spec := n.given("gpuSpecification")
	if gpu := []string{f.GPU, f.InstanceType, f.Backend}; spec == nil && (strings.Join(gpu, "") != "" || len(f.Clusters) > 0) {
		spec = n.replace("gpuSpecification", "")
		spec.kind = objectKind
	}
	if spec != nil && spec.kind == objectKind {
		spec.setText("gpu", "--gpu", f.GPU)
		spec.setText("instanceType", "--instance-type", f.InstanceType)
		spec.setText("backend", "--backend", f.Backend)
		spec.setList("clusters", "--clusters", f.Clusters, text)
	}
	n.setText("name", "--name", f.Name)
	n.setText("description", "--description", f.Description)
	n.setText("containerImage", "--image", f.Image)
	n.setText("containerArgs", "--container-args", f.ContainerArgs)
	n.setList("containerEnvironment", "--container-env", f.ContainerEnv, parts("=", "key", "value"))
	n.setText("helmChart", "--helm-chart", f.HelmChart)
	n.setText("maxRuntimeDuration", "--max-runtime", f.MaxRuntime)
	n.setText("maxQueuedDuration", "--max-queued", f.MaxQueued)
	n.setText("terminationGracePeriodDuration", "--termination-grace", f.TerminationGrace)
	n.setText("resultHandlingStrategy", "--result-strategy", f.ResultStrategy)
	n.setText("resultsLocation", "--results-location", f.ResultsLocation)
	n.setList("models", "--models", f.Models, parts(":", "name", "version", "uri"))
	n.setList("resources", "--resources", f.Resources, parts(":", "name", "version", "uri"))
	n.setList("tags", "--tags", f.Tags, text)
	f.mergeSecrets(n)
	if f.LogsTelemetryID+f.MetricsTelemetryID+f.TracesTelemetryID != "" {
		t := n.given("telemetries")
		if t == nil {
			t = n.replace("telemetries", "")
			t.kind = objectKind
		}
		t.setText("logsTelemetryId", "--logs-telemetry-id", f.LogsTelemetryID)
		t.setText("metricsTelemetryId", "--metrics-telemetry-id", f.MetricsTelemetryID)
		t.setText("tracesTelemetryId", "--traces-telemetry-id", f.TracesTelemetryID)
	}
}

// mergeSecrets drops those of the file that a flag gives again.
func (f NVCTFlags) mergeSecrets(n *node) {
	if len(f.Secrets) == 0 {
		return
	}
	given := map[string]bool{}
	for _, s := range f.Secrets {
		name, _, _ := strings.Cut(s, "=")
		given[name] = true
	}
	var kept []*node
	if have := n.given("secrets"); have != nil {
		kept = slices.DeleteFunc(have.kids, func(kid *node) bool {
			name, _, _ := strings.Cut(kid.text, "=")
			if at := kid.child("name"); at != nil {
				name = at.text
			}
			return given[name]
		})
	}
	n.setList("secrets", "--secrets", f.Secrets, text)
	all := n.given("secrets")
	for _, kid := range kept { // with their places in the file
		all.flag, kid.up = "", all
		all.kids = append(all.kids, kid)
	}
}

// replace puts a member that a flag gave in place of the file's.
func (n *node) replace(key, flag string) *node {
	n.kids = slices.DeleteFunc(n.kids, func(kid *node) bool { return kid.key == key })
	kid := &node{up: n, key: key, flag: flag}
	n.kids = append(n.kids, kid)
	return kid
}

// setText replaces a member by a string, unless that is empty.
func (n *node) setText(key, flag, value string) {
	if value != "" {
		text(n.replace(key, flag), value)
	}
}

// setList replaces a member by a list, unless that is empty, whose elements are
// made by the function one.
func (n *node) setList(key, flag string, values []string, one func(*node, string)) {
	if len(values) == 0 {
		return
	}
	list := n.replace(key, flag)
	list.kind = arrayKind
	for i, v := range values {
		kid := &node{up: list, index: i, flag: flag}
		one(kid, v)
		list.kids = append(list.kids, kid)
	}
}

func text(n *node, value string) { n.kind, n.text = stringKind, value }

// parts makes an object of what is between separators. The last part has what
// is left; parts that are not there are missing.
func parts(sep string, keys ...string) func(*node, string) {
	return func(n *node, value string) {
		n.kind = objectKind
		for i, v := range strings.SplitN(value, sep, len(keys)) {
			n.setText(keys[i], n.flag, v)
		}
	}
}
