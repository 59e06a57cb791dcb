// Package nvct reads tasks for NVIDIA Cloud Tasks, from a file and from the
// flags of its command line. It is pure.
package nvct

import (
	"fmt"
	"strconv"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/foreign"
)

type (
	decoder      = foreign.Decoder
	node         = document.Node
	field[T any] = foreign.Field[T]
)

// Source is the format's name, which a job keeps.
const Source = "nvct"

// task is a task of NVIDIA Cloud Tasks while it is read. Names of fields are
// the document's.
type task struct {
	sub job.Submission

	maxRuntime, grace job.Duration
	graceAt           *node
	strategy          string
	location          *node
}

// What the task's worker gives to programs.
const (
	modelsDir    = "/config/models/"
	resourcesDir = "/config/resources/"
)

// Defaults of fields that are left out.
const (
	defaultMaxQueued job.Duration = 72 * 3600
	defaultGrace     job.Duration = 3600
)

// Parse reads a task.
func Parse(data []byte) (job.Submission, error) {
	n, err := document.Read(data)
	if err != nil {
		return job.Submission{}, err
	}
	return decode(n)
}

func decode(n *node) (job.Submission, error) {
	d := foreign.New()
	t := &task{}
	t.sub.Spec.Gbatch = &job.Gbatch{Source: Source, MaxQueued: defaultMaxQueued, ProgressFile: job.NVCTProgress}
	if document.Object(d, n, fields, t) {
		t.checkImage(d, n)
		t.applyGrace(d)
		t.applyResults(d, n)
	}
	return d.Finish(t.sub)
}

var fields = []field[task]{
	{"name", foreign.OfText(readName), true},
	{"description", foreign.OfText(readDescription), false},
	{"tags", readTags, false},
	{"gpuSpecification", func(d *decoder, n *node, t *task) { document.Object(d, n, gpuFields, t) }, true},
	{"containerImage", func(d *decoder, n *node, t *task) {
		d.Text(n, &t.sub.Spec.Request.Docker.Image, "request.docker.image")
	}, false},
	{"containerArgs", foreign.OfText(readArgs), false},
	{"containerEnvironment", readEnvironment, false},
	{"helmChart", foreign.Refuse[task]("gbatch runs containers: give \"containerImage\" the image that the chart runs; a chart of several containers on one node has no equivalent"), false},
	{"models", func(d *decoder, n *node, t *task) { t.readArtifacts(d, n, modelsDir) }, false},
	{"resources", func(d *decoder, n *node, t *task) { t.readArtifacts(d, n, resourcesDir) }, false},
	{"maxRuntimeDuration", readMaxRuntime, false},
	{"maxQueuedDuration", readMaxQueued, false},
	{"terminationGracePeriodDuration", readGrace, false},
	{"resultHandlingStrategy", func(d *decoder, n *node, t *task) { t.strategy, _ = d.OneOf(n, "NONE", "UPLOAD") }, false},
	{"resultsLocation", func(d *decoder, n *node, t *task) { t.location = n }, false},
	{"secrets", readSecrets, false},
	{"telemetries", func(d *decoder, n *node, t *task) { document.Object(d, n, telemetryFields, t) }, false},
}

var gpuFields = []field[task]{
	{"gpu", foreign.OfText(readGPU), true},
	{"instanceType", foreign.OfText(readInstanceType), true},
	{"backend", foreign.OfText(func(d *decoder, n *node, t *task, s string) {
		d.AnyFeature(n, t.sub.Spec.Gbatch, "backend", s)
	}), false},
	{"clusters", readClusters, false},
	{"configuration", foreign.Refuse[task]("it is about Helm charts, and gbatch runs containers: remove it"), false},
	{"helmValidationPolicy", foreign.Refuse[task]("it is about Helm charts, and gbatch runs containers: remove it"), false},
}

const siteTelemetry = "is not used: logs are read with glog, and metrics are collected by the site"

var telemetryFields = []field[task]{
	{"logsTelemetryId", foreign.Remark[task](siteTelemetry), false},
	{"metricsTelemetryId", foreign.Remark[task](siteTelemetry), false},
	{"tracesTelemetryId", foreign.Remark[task](siteTelemetry), false},
}

func readDescription(d *decoder, n *node, t *task, s string) {
	if len([]rune(s)) > 256 {
		d.Problem(n, fmt.Sprintf("must have at most 256 characters, has %d", len([]rune(s))), "")
		return
	}
	t.sub.Spec.Description = s
	d.Becomes("description", n)
}

// readTags keeps each tag as the name of a label, since a tag may have any
// number of : and = in it.
func readTags(d *decoder, n *node, t *task) {
	g := t.sub.Spec.Gbatch
	if len(n.Kids) > 64 {
		d.Problem(n, fmt.Sprintf("has %d tags, at most 64 are allowed", len(n.Kids)), "")
		return
	}
	d.Elements(n, func(n *node) {
		s, ok := d.Str(n)
		if !ok {
			return
		}
		if s == "" || !document.IsName("x"+s, "_:=-", 129) {
			d.Problem(n, fmt.Sprintf("is %s: want 1 to 128 letters, digits and - _ : =", document.Quote(s)), "")
			return
		}
		foreign.Set(&g.Labels, s, "")
	})
	d.Becomes("gbatch.labels", n)
}

func readGPU(d *decoder, n *node, t *task, s string) {
	t.sub.Spec.Request.Resources.GPUModel = []string{s}
	d.Becomes("request.resources.gpuModel", n)
	d.Note(n, fmt.Sprintf("is read as any GPU whose model has %s in its name", document.Quote(s)))
}

// readInstanceType leaves the amounts to the site's table. The number of GPUs
// is taken from a name that says it, as GPU.H100_8x.
func readInstanceType(d *decoder, n *node, t *task, s string) {
	t.sub.Spec.Gbatch.InstanceType = s
	d.Becomes("gbatch.instanceType", n)
	digits := strings.TrimSuffix(s[strings.LastIndexByte(s, '_')+1:], "x")
	count, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || len(digits) > 4 || !strings.HasSuffix(s, "_"+digits+"x") {
		d.Note(n, "does not end in the number of GPUs, as GPU.H100_8x does: it is that of the site's table of instance types")
		return
	}
	t.sub.Spec.Request.Resources.GPUs = float64(count)
	d.Becomes("request.resources.gpus", n)
}

func readClusters(d *decoder, n *node, t *task) {
	var names []string
	d.Elements(n, func(n *node) {
		if s, ok := d.Str(n); ok {
			names = append(names, s)
		}
	})
	if len(names) > 0 {
		d.AnyFeature(n, t.sub.Spec.Gbatch, "cluster", names...)
	}
}

// checkImage wants an image, unless it was told already that charts are not run.
func (t *task) checkImage(d *decoder, n *node) {
	if n.Given("containerImage") == nil && n.Given("helmChart") == nil {
		d.Missing(n, "containerImage", "")
	}
}

func readMaxRuntime(d *decoder, n *node, t *task) {
	t.maxRuntime = d.ISO8601(n)
	t.sub.Spec.Request.Scheduling.MaxDuration = t.maxRuntime
	d.Becomes("request.scheduling.maxDuration", n)
	if t.maxRuntime > 0 {
		d.Note(n, "is counted from the start of the container, not from the first progress report")
	}
}

func readMaxQueued(d *decoder, n *node, t *task) {
	t.sub.Spec.Gbatch.MaxQueued = d.ISO8601(n)
	d.Becomes("gbatch.maxQueued", n)
}

func readGrace(d *decoder, n *node, t *task) {
	t.grace, t.graceAt = d.ISO8601(n), n
	d.Becomes("gbatch.stopGrace", n)
}

// applyGrace clamps the grace to the run time if the document leaves it out,
// and refuses one that is longer.
func (t *task) applyGrace(d *decoder) {
	switch {
	case t.graceAt == nil && t.maxRuntime > 0:
		t.grace = min(defaultGrace, t.maxRuntime)
	case t.graceAt == nil:
		t.grace = defaultGrace
	case t.maxRuntime > 0 && t.grace > t.maxRuntime:
		d.Problem(t.graceAt, fmt.Sprintf("must be at most maxRuntimeDuration, %s, is %s", t.maxRuntime, t.grace), "")
	}
	t.sub.Spec.Gbatch.StopGrace = t.grace
}

func readName(d *decoder, n *node, t *task, s string) {
	if !document.IsName(s, "_-", 128) {
		d.Problem(n, fmt.Sprintf("is %s: want 1 to 128 letters, digits, - and _, the first a letter or digit", document.Quote(s)), "")
		return
	}
	t.sub.Spec.Name = s
	d.Becomes("name", n)
}
