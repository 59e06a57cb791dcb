package nvct

import (
	"encoding/csv"
	"slices"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
)

// Flags are the fields of a task that the command line gives. Each wins
// over the file's. Secrets are not among them: see job.Submission.SetSecrets. The tags are for whoever reads a
// command line by them.
type Flags struct {
	Name             string   `help:"The task's name."`
	Description      string   `help:"What it is for."`
	GPU              string   `name:"gpu" placeholder:"NAME" help:"GPU, as H100."`
	InstanceType     string   `placeholder:"TYPE" help:"One of the site's instance types, as GPU.H100_1x."`
	Backend          string   `help:"Only nodes with the feature backend=BACKEND."`
	Clusters         []string `sep:"none" placeholder:"NAME" help:"Only nodes with a feature cluster=NAME. May be repeated, as those below."`
	Image            string   `aliases:"container-image" help:"Container image."`
	ContainerEnv     []string `sep:"none" aliases:"container-environment" placeholder:"KEY=VALUE" help:"Variables, instead of the file's."`
	HelmChart        string   `hidden:""`
	MaxRuntime       string   `aliases:"max-runtime-duration" placeholder:"PT4H" help:"Time limit, ISO 8601."`
	MaxQueued        string   `aliases:"max-queued-duration" placeholder:"PT72H" help:"Fail after that long in the queue."`
	TerminationGrace string   `aliases:"termination-grace-period-duration" placeholder:"PT1H" help:"Time to end when told to."`
	ResultStrategy   string   `aliases:"result-handling-strategy" placeholder:"NONE|UPLOAD" help:"What becomes of /var/task/results."`
	ResultsLocation  string   `aliases:"result-location" placeholder:"URI" help:"Where to: s3://BUCKET/PREFIX/ or file:///PATH in the site's storage."`
	Models           []string `sep:"none" aliases:"model" placeholder:"NAME:VERSION:URI" help:"Put into /config/models/NAME."`
	Resources        []string `sep:"none" aliases:"resource" placeholder:"NAME:VERSION:URI" help:"Put into /config/resources/NAME."`
	Tags             []string `sep:"none" aliases:"tag" placeholder:"TAG" help:"Labels, instead of the file's."`

	LogsTelemetryID    string `name:"logs-telemetry-id" hidden:""`
	MetricsTelemetryID string `name:"metrics-telemetry-id" hidden:""`
	TracesTelemetryID  string `name:"traces-telemetry-id" hidden:""`

	ContainerArgs string `kong:"-"` // it may begin with a dash, which the tags cannot say
}

// ParseFlags reads a task from a file, which may be empty, and flags.
func ParseFlags(data []byte, f Flags) (job.Submission, error) {
	n := &node{Kind: document.ObjectKind}
	if len(data) > 0 {
		var err error
		if n, err = document.Read(data); err != nil {
			return job.Submission{}, err
		}
	}
	if n.Kind == document.ObjectKind {
		f.overlay(n)
	}
	return decode(n)
}

func (f Flags) overlay(n *node) {
	for _, list := range []*[]string{&f.Clusters, &f.ContainerEnv, &f.Models, &f.Resources, &f.Tags} {
		*list = commas(*list)
	}
	spec := n.Given("gpuSpecification")
	if gpu := []string{f.GPU, f.InstanceType, f.Backend}; spec == nil && (strings.Join(gpu, "") != "" || len(f.Clusters) > 0) {
		spec = replace(n, "gpuSpecification", "")
		spec.Kind = document.ObjectKind
	}
	if spec != nil && spec.Kind == document.ObjectKind {
		setText(spec, "gpu", "--gpu", f.GPU)
		setText(spec, "instanceType", "--instance-type", f.InstanceType)
		setText(spec, "backend", "--backend", f.Backend)
		setList(spec, "clusters", "--clusters", f.Clusters)
	}
	setText(n, "name", "--name", f.Name)
	setText(n, "description", "--description", f.Description)
	setText(n, "containerImage", "--image", f.Image)
	setText(n, "containerArgs", "--container-args", f.ContainerArgs)
	split(setList(n, "containerEnvironment", "--container-env", f.ContainerEnv), "=", "key", "value")
	setText(n, "helmChart", "--helm-chart", f.HelmChart)
	setText(n, "maxRuntimeDuration", "--max-runtime", f.MaxRuntime)
	setText(n, "maxQueuedDuration", "--max-queued", f.MaxQueued)
	setText(n, "terminationGracePeriodDuration", "--termination-grace", f.TerminationGrace)
	setText(n, "resultHandlingStrategy", "--result-strategy", f.ResultStrategy)
	setText(n, "resultsLocation", "--results-location", f.ResultsLocation)
	split(setList(n, "models", "--models", f.Models), ":", "name", "version", "uri")
	split(setList(n, "resources", "--resources", f.Resources), ":", "name", "version", "uri")
	setList(n, "tags", "--tags", f.Tags)
	if f.LogsTelemetryID+f.MetricsTelemetryID+f.TracesTelemetryID != "" {
		t := n.Given("telemetries")
		if t == nil {
			t = replace(n, "telemetries", "")
			t.Kind = document.ObjectKind
		}
		setText(t, "logsTelemetryId", "--logs-telemetry-id", f.LogsTelemetryID)
		setText(t, "metricsTelemetryId", "--metrics-telemetry-id", f.MetricsTelemetryID)
		setText(t, "tracesTelemetryId", "--traces-telemetry-id", f.TracesTelemetryID)
	}
}

// commas takes each value apart at its commas, as nvcf-cli does: what has one in
// it stands in quotes.
func commas(values []string) (all []string) {
	for _, v := range values {
		parts, err := csv.NewReader(strings.NewReader(v)).Read()
		if err != nil { // an odd quote: it is as it is written
			parts = []string{v}
		}
		all = append(all, parts...)
	}
	return all
}

// replace puts a member that a flag gave in place of the file's.
func replace(n *node, key, flag string) *node {
	n.Kids = slices.DeleteFunc(n.Kids, func(kid *node) bool { return kid.Key == key })
	kid := &node{Up: n, Key: key, Flag: flag}
	n.Kids = append(n.Kids, kid)
	return kid
}

// setText replaces a member by a string, unless that is empty.
func setText(n *node, key, flag, value string) {
	if value != "" {
		text(replace(n, key, flag), value)
	}
}

// setList replaces a member by a list of strings, unless that is empty, and gives
// its elements.
func setList(n *node, key, flag string, values []string) []*node {
	if len(values) == 0 {
		return nil
	}
	list := replace(n, key, flag)
	list.Kind = document.ArrayKind
	for i, v := range values {
		kid := &node{Up: list, Index: int32(i), Flag: flag}
		text(kid, v)
		list.Kids = append(list.Kids, kid)
	}
	return list.Kids
}

func text(n *node, value string) { n.Kind, n.Text = document.StringKind, value }

// split makes an object of each string, from what is between separators. The last
// part has what is left; parts that are not there are missing.
func split(list []*node, sep string, keys ...string) {
	for _, n := range list {
		value := n.Text
		n.Kind, n.Text = document.ObjectKind, ""
		for i, v := range strings.SplitN(value, sep, len(keys)) {
			setText(n, keys[i], n.Flag, v)
		}
	}
}
