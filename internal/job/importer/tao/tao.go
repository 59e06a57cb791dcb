// Package tao reads jobs of TAO's local Docker back end: the arguments of
// create_job as an object. It is pure.
package tao

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/foreign"
	"gbatch/oci/ref"
)

type (
	decoder      = foreign.Decoder
	node         = document.Node
	field[T any] = foreign.Field[T]
)

// Source is the format's name, which a job keeps.
const Source = "tao"

// call is a job of TAO's local Docker back end on its way to a job: the
// arguments of create_job as an object.
type call struct {
	sub     job.Submission
	callers func(string) (string, bool)

	id         string
	gpus       *node
	inputs     *node
	outputs    *node
	usesS3     bool
	resultRoot string
}

// stopGrace is how long Docker waits before it kills.
const stopGrace job.Duration = 10

// What a job gets for each GPU, since create_job asks for nothing else.
const (
	coresPerGPU  = 2
	memoryPerGPU = 8
)

// Parse reads a job. What its variables do not say is asked of env, the
// variables of its author; nil: none.
func Parse(data []byte, env func(string) (string, bool)) (job.Submission, error) {
	n, err := document.Read(data)
	if err != nil {
		return job.Submission{}, err
	}
	d := foreign.New()
	t := &call{callers: env}
	t.sub.Spec.Gbatch = &job.Gbatch{Source: Source, StopGrace: stopGrace}
	t.sub.Spec.Request.Resources.GPUs = 1
	if document.Object(d, n, fields(), t) {
		t.combine(d, n)
	}
	return d.Finish(t.sub)
}

func fields() []field[call] {
	return []field[call]{
		{"image", func(d *decoder, n *node, t *call) {
			d.Text(n, &t.sub.Spec.Request.Docker.Image, "request.docker.image")
		}, true},
		{"command", readCommand, true},
		{"gpu_count", readGPUs, false},
		{"num_gpu", readGPUs, false},
		{"num_gpus", readGPUs, false},
		{"env_vars", readEnv, false},
		{"environment", readEnv, false},
		{"inputs", func(d *decoder, n *node, t *call) { t.inputs = n }, false},
		{"outputs", func(d *decoder, n *node, t *call) { t.outputs = n }, false},
		{"job_id", func(d *decoder, n *node, t *call) { t.id, _ = d.Scalar(n); d.Becomes("name", n) }, false},
		{"name", func(d *decoder, n *node, t *call) { t.sub.Spec.Description, _ = d.Str(n); d.Becomes("description", n) }, false},
		{"backend_type", func(d *decoder, n *node, _ *call) { d.OneOf(n, "local-docker") }, false},
		{"num_nodes", func(d *decoder, n *node, _ *call) {
			if x, ok := d.Integer(n, 1, 10_000); ok && x > 1 {
				d.Problem(n, "is above 1: TAO's local jobs have one node", "set gbatch.nodes in a native job")
			}
		}, false},
		{"docker_network", foreign.Remark[call]("is not used: every job has a network of its own"), false},
	}
}

// readCommand reads a line, which bash runs, or a list, which is run as it is.
func readCommand(d *decoder, n *node, t *call) {
	d.Becomes("request.docker.command", n)
	argv := d.Strs(n)
	if n.Kind == document.StringKind {
		if strings.TrimSpace(n.Text) == "" {
			d.Problem(n, "must not be empty", "")
		}
		argv = []string{"/bin/bash", "-c", n.Text}
	}
	t.sub.Spec.Request.Docker.Command = job.Command{Argv: argv}
}

// readGPUs reads a number of GPUs: 0 for none, -1 for all of the node.
func readGPUs(d *decoder, n *node, t *call) {
	if t.gpus != nil {
		d.Problem(n, "is the number of GPUs, as "+t.gpus.Key+" is", "keep one of them")
		return
	}
	t.gpus = n
	if x, ok := d.Integer(n, -1, 1024); ok {
		t.sub.Spec.Request.Resources.GPUs = float64(x)
	}
	d.Becomes("request.resources.gpus", n)
}

// ownVariables are the variables of TAO's own services, which jobs never get.
var ownVariables = []string{"BACKEND", "HOST_PLATFORM", "MONGOSECRET", "DOCKER_HOST", "DOCKER_NETWORK"}

func readEnv(d *decoder, n *node, t *call) {
	if n.Kind != document.ObjectKind {
		d.WrongKind(n, "an object")
		return
	}
	for _, kid := range n.Kids {
		text, ok := d.Scalar(kid)
		switch {
		case !ok:
		case slices.Contains(ownVariables, kid.Key):
			d.Note(kid, "is not passed on: it belongs to TAO's own services")
		default:
			t.set(kid.Key, text)
			d.Becomes(document.Member("request.docker.environment", kid.Key), kid)
		}
	}
}

func (t *call) set(name, value string) {
	foreign.Set(&t.sub.Spec.Request.Docker.Environment, name, value)
}

// env is a variable of the job, or of whoever submits it.
func (t *call) env(name string) string {
	if v := t.sub.Spec.Request.Docker.Environment[name]; v != "" {
		return v
	}
	if t.callers != nil {
		if v, ok := t.callers(name); ok {
			return v
		}
	}
	return ""
}

// combine makes of what was read what only makes sense together.
func (t *call) combine(d *decoder, n *node) {
	s := &t.sub.Spec
	s.Name = "tao-job"
	if t.id != "" {
		s.Name = "tao-job-" + t.id
		s.Gbatch.Replace = true
		t.set("TAO_JOB_ID", t.id)
		d.Note(n.Child("job_id"), "is the job's name; a job of this name that is not over is cancelled first, as TAO replaces it")
	}
	r := &s.Request.Resources
	share := int(max(1, r.GPUs))
	r.CPUs, r.CPUMemoryGB = coresPerGPU*share, memoryPerGPU*share
	s.Gbatch.ShmSizeMB = r.CPUMemoryGB * 1024 / 2
	d.Note(n, fmt.Sprintf("names no cores and memory: %d cores and %d GiB for each GPU, half of it for /dev/shm; gsubmit -c and --mem give it more", coresPerGPU, memoryPerGPU))
	if t.inputs != nil {
		t.readInputs(d)
	}
	if t.outputs != nil {
		t.readOutputs(d)
	}
	if t.usesS3 {
		t.keys(d, n)
	}
	t.login()
}

// readInputs reads what is brought into the container: a URI by path. A path
// of the node is mounted.
func (t *call) readInputs(d *decoder) {
	if t.inputs.Kind != document.ObjectKind {
		d.WrongKind(t.inputs, "an object of URIs by path in the container")
		return
	}
	g, docker := t.sub.Spec.Gbatch, &t.sub.Spec.Request.Docker
	for _, kid := range t.inputs.Kids {
		uri, ok := d.Str(kid)
		if !ok {
			continue
		}
		if local := strings.TrimPrefix(uri, "file://"); strings.HasPrefix(local, "/") {
			d.Becomes(fmt.Sprintf("request.docker.storage[%d]", len(docker.Storage)), kid)
			docker.Storage = append(docker.Storage, job.Storage{HostPath: local, ContainerPath: kid.Key, ReadOnly: true})
			continue
		}
		t.usesS3 = t.usesS3 || strings.HasPrefix(uri, "s3://")
		d.Becomes(fmt.Sprintf("gbatch.inputs[%d]", len(g.Inputs)), kid)
		g.Inputs = append(g.Inputs, job.Input{URI: uri, Path: kid.Key})
	}
}

// readOutputs reads the directories that are saved below the results' root.
func (t *call) readOutputs(d *decoder) {
	root := strings.TrimSuffix(t.env("TAO_RESULTS_ROOT"), "/")
	switch bucket := t.env("S3_BUCKET_NAME"); {
	case root != "":
		root += "/" + t.id
	case bucket != "":
		root = "s3://" + bucket + "/results/" + t.id
	default:
		d.Note(t.outputs, "are not saved: TAO_RESULTS_ROOT and S3_BUCKET_NAME are not set, and what the container writes is gone with it")
		return
	}
	if t.id == "" {
		d.Problem(t.outputs, "are saved below a directory of the job's id, and it has none", "give it a job_id")
		return
	}
	if strings.HasPrefix(root, "/") {
		root = "file://" + root
	}
	t.usesS3 = t.usesS3 || strings.HasPrefix(root, "s3://")
	t.set("TAO_RESULTS_ROOT", root)
	g := t.sub.Spec.Gbatch
	for _, dir := range d.Strs(t.outputs) {
		d.Becomes(fmt.Sprintf("gbatch.outputs[%d]", len(g.Outputs)), t.outputs)
		g.Outputs = append(g.Outputs, job.Output{Path: strings.TrimSuffix(dir, "/"), URI: root + "/" + path.Base(dir) + "/", When: job.WhenAlways})
	}
}

// keys takes the keys of S3 from where TAO has them.
func (t *call) keys(d *decoder, n *node) {
	g := t.sub.Spec.Gbatch
	g.S3 = &job.S3{Endpoint: t.env("S3_ENDPOINT_URL"), AccessKey: "ACCESS_KEY", SecretKey: "SECRET_KEY"}
	t.sub.Secrets = map[string]string{}
	for _, name := range []string{"ACCESS_KEY", "SECRET_KEY"} {
		value := t.env(name)
		if value == "" {
			d.Problem(n, "needs the variable "+name+" for s3://", "set it where the job is submitted")
			continue
		}
		delete(t.sub.Spec.Request.Docker.Environment, name) // a secret is told as one
		g.Secrets = append(g.Secrets, job.Secret{Name: name})
		t.sub.Secrets[name] = value
	}
}

// login takes the registry's password from where TAO has it.
func (t *call) login() {
	docker := &t.sub.Spec.Request.Docker
	key := t.env("NGC_KEY")
	r, creds, err := ref.Parse(docker.Image)
	if err != nil || creds != nil || key == "" || !strings.HasPrefix(r.String(), "nvcr.io/") {
		return
	}
	user := cmp.Or(t.env("DOCKER_USERNAME"), "$oauthtoken")
	delete(docker.Environment, "NGC_KEY")
	docker.Image = r.String()
	t.sub.Registry = &ref.Credentials{Username: user, Password: key}
}
