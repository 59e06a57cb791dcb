package importer

import (
	"fmt"
	"regexp"
	"strconv"

	"gbatch/internal/job"
)

// nvct is a task of NVIDIA Cloud Tasks while it is read. Names of fields are
// the document's.
type nvct struct {
	sub job.Submission

	maxRuntime, grace job.Duration
	graceAt           *node
	strategy          string
	location          *node
}

// What the task's worker gives to programs.
const (
	nvctModels = "/config/models/"
	nvctFiles  = "/config/resources/"
)

// Defaults of fields that are left out.
const (
	nvctMaxQueued job.Duration = 72 * 3600
	nvctGrace     job.Duration = 3600
)

func parseNVCT(data []byte) (job.Submission, error) {
	n, err := readTree(data)
	if err != nil {
		return job.Submission{}, err
	}
	return nvctTask(n)
}

func nvctTask(n *node) (job.Submission, error) {
	d := &decoder{}
	t := &nvct{}
	t.sub.Spec.Gbatch = &job.Gbatch{Source: string(NVCT), MaxQueued: nvctMaxQueued, ProgressFile: job.NVCTProgress}
	if object(d, n, nvctFields, t) {
		t.checkImage(d, n)
		t.applyGrace(d)
		t.applyResults(d, n)
	}
	return d.finish(t.sub)
}

var nvctFields = []field[nvct]{
	{"name", func(d *decoder, n *node, t *nvct) { t.readName(d, n) }, true},
	{"description", func(d *decoder, n *node, t *nvct) { t.readDescription(d, n) }, false},
	{"tags", func(d *decoder, n *node, t *nvct) { t.readTags(d, n) }, false},
	{"gpuSpecification", func(d *decoder, n *node, t *nvct) { object(d, n, nvctGPUFields, t) }, true},
	{"containerImage", func(d *decoder, n *node, t *nvct) { t.readImage(d, n) }, false},
	{"containerArgs", func(d *decoder, n *node, t *nvct) { t.readArgs(d, n) }, false},
	{"containerEnvironment", func(d *decoder, n *node, t *nvct) { t.readEnvironment(d, n) }, false},
	{"helmChart", refuse[nvct]("gbatch runs containers: give \"containerImage\" the image that the chart runs; a chart of several containers on one node has no equivalent"), false},
	{"models", func(d *decoder, n *node, t *nvct) { t.readArtifacts(d, n, nvctModels) }, false},
	{"resources", func(d *decoder, n *node, t *nvct) { t.readArtifacts(d, n, nvctFiles) }, false},
	{"maxRuntimeDuration", func(d *decoder, n *node, t *nvct) { t.readMaxRuntime(d, n) }, false},
	{"maxQueuedDuration", func(d *decoder, n *node, t *nvct) { t.readMaxQueued(d, n) }, false},
	{"terminationGracePeriodDuration", func(d *decoder, n *node, t *nvct) { t.readGrace(d, n) }, false},
	{"resultHandlingStrategy", func(d *decoder, n *node, t *nvct) { t.strategy, _ = d.oneOf(n, "NONE", "UPLOAD") }, false},
	{"resultsLocation", func(d *decoder, n *node, t *nvct) { t.location = n }, false},
	{"secrets", func(d *decoder, n *node, t *nvct) { t.readSecrets(d, n) }, false},
	{"telemetries", func(d *decoder, n *node, t *nvct) { object(d, n, nvctTelemetryFields, t) }, false},
}

var nvctGPUFields = []field[nvct]{
	{"gpu", func(d *decoder, n *node, t *nvct) { t.readGPU(d, n) }, true},
	{"instanceType", func(d *decoder, n *node, t *nvct) { t.readInstanceType(d, n) }, true},
	{"backend", func(d *decoder, n *node, t *nvct) { t.readBackend(d, n) }, false},
	{"clusters", func(d *decoder, n *node, t *nvct) { t.readClusters(d, n) }, false},
	{"configuration", refuse[nvct]("it is about Helm charts, and gbatch runs containers: remove it"), false},
	{"helmValidationPolicy", refuse[nvct]("it is about Helm charts, and gbatch runs containers: remove it"), false},
}

const siteTelemetry = "is not used: logs are read with glog, and metrics are collected by the site"

var nvctTelemetryFields = []field[nvct]{
	{"logsTelemetryId", remark[nvct](siteTelemetry), false},
	{"metricsTelemetryId", remark[nvct](siteTelemetry), false},
	{"tracesTelemetryId", remark[nvct](siteTelemetry), false},
}

var nvctName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

var (
	nvctTag      = regexp.MustCompile(`^[A-Za-z0-9_:=-]{1,128}$`)
	nvctInstance = regexp.MustCompile(`_([0-9]{1,4})x$`)
)

func (t *nvct) readDescription(d *decoder, n *node) {
	s, ok := d.str(n)
	if ok && len([]rune(s)) > 256 {
		d.problem(n, fmt.Sprintf("must have at most 256 characters, has %d", len([]rune(s))), "")
		return
	}
	t.sub.Spec.Description = s
	d.becomes("description", n)
}

// readTags keeps each tag as the name of a label, since a tag may have any
// number of : and = in it.
func (t *nvct) readTags(d *decoder, n *node) {
	g := t.sub.Spec.Gbatch
	if len(n.kids) > 64 {
		d.problem(n, fmt.Sprintf("has %d tags, at most 64 are allowed", len(n.kids)), "")
		return
	}
	d.elements(n, func(n *node) {
		s, ok := d.str(n)
		if !ok {
			return
		}
		if !nvctTag.MatchString(s) {
			d.problem(n, fmt.Sprintf("is %s: want 1 to 128 letters, digits and - _ : =", quote(s)), "")
			return
		}
		if g.Labels == nil {
			g.Labels = map[string]string{}
		}
		g.Labels[s] = ""
	})
	d.becomes("gbatch.labels", n)
}

func (t *nvct) readGPU(d *decoder, n *node) {
	s, ok := d.str(n)
	if !ok {
		return
	}
	t.sub.Spec.Request.Resources.GPUModel = []string{s}
	d.becomes("request.resources.gpuModel", n)
	d.note(n, fmt.Sprintf("is read as any GPU whose model has %s in its name", quote(s)))
}

// readInstanceType leaves the amounts to the site's table. The number of GPUs
// is taken from a name that says it, as GPU.H100_8x.
func (t *nvct) readInstanceType(d *decoder, n *node) {
	s, ok := d.str(n)
	if !ok {
		return
	}
	t.sub.Spec.Gbatch.InstanceType = s
	d.becomes("gbatch.instanceType", n)
	m := nvctInstance.FindStringSubmatch(s)
	if m == nil {
		d.note(n, "does not end in the number of GPUs, as GPU.H100_8x does: it is that of the site's table of instance types")
		return
	}
	count, _ := strconv.Atoi(m[1])
	t.sub.Spec.Request.Resources.GPUs = float64(count)
	d.becomes("request.resources.gpus", n)
}

func (t *nvct) readBackend(d *decoder, n *node) {
	if s, ok := d.str(n); ok {
		t.feature(d, n, []string{"backend=" + s})
	}
}

func (t *nvct) readClusters(d *decoder, n *node) {
	var any []string
	d.elements(n, func(n *node) {
		if s, ok := d.str(n); ok {
			any = append(any, "cluster="+s)
		}
	})
	if len(any) > 0 {
		t.feature(d, n, any)
	}
}

func (t *nvct) feature(d *decoder, n *node, any []string) {
	addAnyFeature(d, n, t.sub.Spec.Gbatch, any)
}

// checkImage wants an image, unless it was told already that charts are not run.
func (t *nvct) checkImage(d *decoder, n *node) {
	if n.given("containerImage") == nil && n.given("helmChart") == nil {
		d.missing(n, "containerImage", "")
	}
}

func (t *nvct) readMaxRuntime(d *decoder, n *node) {
	t.maxRuntime = d.iso(n)
	t.sub.Spec.Request.Scheduling.MaxDuration = t.maxRuntime
	d.becomes("request.scheduling.maxDuration", n)
	if t.maxRuntime > 0 {
		d.note(n, "is counted from the start of the container, not from the first progress report")
	}
}

func (t *nvct) readMaxQueued(d *decoder, n *node) {
	t.sub.Spec.Gbatch.MaxQueued = d.iso(n)
	d.becomes("gbatch.maxQueued", n)
}

func (t *nvct) readGrace(d *decoder, n *node) {
	t.grace, t.graceAt = d.iso(n), n
	d.becomes("gbatch.stopGrace", n)
}

// applyGrace clamps the grace to the run time if the document leaves it out,
// and refuses one that is longer.
func (t *nvct) applyGrace(d *decoder) {
	switch {
	case t.graceAt == nil && t.maxRuntime > 0:
		t.grace = min(nvctGrace, t.maxRuntime)
	case t.graceAt == nil:
		t.grace = nvctGrace
	case t.maxRuntime > 0 && t.grace > t.maxRuntime:
		d.problem(t.graceAt, fmt.Sprintf("must be at most maxRuntimeDuration, %s, is %s", t.maxRuntime, t.grace), "")
	}
	t.sub.Spec.Gbatch.StopGrace = t.grace
}

func (t *nvct) readName(d *decoder, n *node) {
	s, ok := d.str(n)
	if ok && !nvctName.MatchString(s) {
		d.problem(n, fmt.Sprintf("is %s: want 1 to 128 letters, digits, - and _, the first a letter or digit", quote(s)), "")
		return
	}
	t.sub.Spec.Name = s
	d.becomes("name", n)
}
