package importer

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"gbatch/internal/job"
	"gbatch/oci/ref"
)

// tao is a job of TAO's local Docker back end on its way to a job: the
// arguments of create_job as an object.
type tao struct {
	sub job.Submission
	o   Options

	id         string
	gpus       *node
	inputs     *node
	outputs    *node
	usesS3     bool
	resultRoot string
}

// taoStopGrace is how long Docker waits before it kills.
const taoStopGrace job.Duration = 10

// What a job gets for each GPU, since create_job asks for nothing else.
const (
	taoCores    = 2
	taoMemoryGB = 8
)

func parseTAO(data []byte, o Options) (job.Submission, error) {
	n, err := readTree(data)
	if err != nil {
		return job.Submission{}, err
	}
	d := &decoder{}
	t := &tao{o: o}
	t.sub.Spec.Gbatch = &job.Gbatch{Source: string(TAO), StopGrace: taoStopGrace}
	t.sub.Spec.Request.Resources.GPUs = 1
	if object(d, n, taoFields(), t) {
		t.settle(d, n)
	}
	return d.finish(t.sub)
}

func taoFields() []field[tao] {
	return []field[tao]{
		{"image", func(d *decoder, n *node, t *tao) {
			t.sub.Spec.Request.Docker.Image, _ = d.str(n)
			d.becomes("request.docker.image", n)
		}, true},
		{"command", taoCommand, true},
		{"gpu_count", taoGPUs, false},
		{"num_gpu", taoGPUs, false},
		{"num_gpus", taoGPUs, false},
		{"env_vars", taoEnv, false},
		{"environment", taoEnv, false},
		{"inputs", func(d *decoder, n *node, t *tao) { t.inputs = n }, false},
		{"outputs", func(d *decoder, n *node, t *tao) { t.outputs = n }, false},
		{"job_id", func(d *decoder, n *node, t *tao) { t.id, _ = d.scalar(n); d.becomes("name", n) }, false},
		{"name", func(d *decoder, n *node, t *tao) { t.sub.Spec.Description, _ = d.str(n); d.becomes("description", n) }, false},
		{"backend_type", func(d *decoder, n *node, _ *tao) { d.oneOf(n, "local-docker") }, false},
		{"num_nodes", func(d *decoder, n *node, _ *tao) {
			if x, ok := d.integer(n, 1, 10_000); ok && x > 1 {
				d.problem(n, "is above 1: TAO's local jobs have one node", "set gbatch.nodes in a native job")
			}
		}, false},
		{"docker_network", remark[tao]("is not used: every job has a network of its own"), false},
	}
}

// taoCommand reads a line, which bash runs, or a list, which is run as it is.
func taoCommand(d *decoder, n *node, t *tao) {
	d.becomes("request.docker.command", n)
	argv := d.strs(n)
	if n.kind == stringKind {
		if strings.TrimSpace(n.text) == "" {
			d.problem(n, "must not be empty", "")
		}
		argv = []string{"/bin/bash", "-c", n.text}
	}
	t.sub.Spec.Request.Docker.Command = job.Command{Argv: argv}
}

// taoGPUs reads a number of GPUs: 0 for none, -1 for all of the node.
func taoGPUs(d *decoder, n *node, t *tao) {
	if t.gpus != nil {
		d.problem(n, "is the number of GPUs, as "+t.gpus.key+" is", "keep one of them")
		return
	}
	t.gpus = n
	if x, ok := d.integer(n, -1, 1024); ok {
		t.sub.Spec.Request.Resources.GPUs = float64(x)
	}
	d.becomes("request.resources.gpus", n)
}

// taoOwn are the variables of TAO's own services, which jobs never get.
var taoOwn = []string{"BACKEND", "HOST_PLATFORM", "MONGOSECRET", "DOCKER_HOST", "DOCKER_NETWORK"}

func taoEnv(d *decoder, n *node, t *tao) {
	if n.kind != objectKind {
		d.wrongKind(n, "an object")
		return
	}
	for _, kid := range n.kids {
		text, ok := d.scalar(kid)
		switch {
		case !ok:
		case slices.Contains(taoOwn, kid.key):
			d.note(kid, "is not passed on: it belongs to TAO's own services")
		default:
			t.set(kid.key, text)
			d.becomes(member("request.docker.environment", kid.key), kid)
		}
	}
}

func (t *tao) set(name, value string) {
	env := &t.sub.Spec.Request.Docker.Environment
	if *env == nil {
		*env = map[string]string{}
	}
	(*env)[name] = value
}

// env is a variable of the job, or of whoever submits it.
func (t *tao) env(name string) string {
	if v := t.sub.Spec.Request.Docker.Environment[name]; v != "" {
		return v
	}
	if t.o.Env != nil {
		if v, ok := t.o.Env(name); ok {
			return v
		}
	}
	return ""
}

// settle makes of what was read what only makes sense together.
func (t *tao) settle(d *decoder, n *node) {
	s := &t.sub.Spec
	s.Name = "tao-job"
	if t.id != "" {
		s.Name = "tao-job-" + t.id
		s.Gbatch.Replace = true
		t.set("TAO_JOB_ID", t.id)
		d.note(n.child("job_id"), "is the job's name; a job of this name that is not over is cancelled first, as TAO replaces it")
	}
	r := &s.Request.Resources
	share := int(max(1, r.GPUs))
	r.CPUs, r.CPUMemoryGB = taoCores*share, taoMemoryGB*share
	s.Gbatch.ShmSizeMB = r.CPUMemoryGB * 1024 / 2
	d.note(n, fmt.Sprintf("names no cores and memory: %d cores and %d GiB for each GPU, half of it for /dev/shm; gsubmit -c and --mem give it more", taoCores, taoMemoryGB))
	if t.inputs != nil {
		t.readInputs(d)
	}
	if t.outputs != nil {
		t.readOutputs(d)
	}
	if t.usesS3 {
		t.keys(d, n)
	}
	t.login(d, n)
}

// readInputs reads what is brought into the container: a URI by path. A path
// of the node is mounted.
func (t *tao) readInputs(d *decoder) {
	if t.inputs.kind != objectKind {
		d.wrongKind(t.inputs, "an object of URIs by path in the container")
		return
	}
	g, docker := t.sub.Spec.Gbatch, &t.sub.Spec.Request.Docker
	for _, kid := range t.inputs.kids {
		uri, ok := d.str(kid)
		if !ok {
			continue
		}
		if local := strings.TrimPrefix(uri, "file://"); strings.HasPrefix(local, "/") {
			d.becomes(fmt.Sprintf("request.docker.storage[%d]", len(docker.Storage)), kid)
			docker.Storage = append(docker.Storage, job.Storage{HostPath: local, ContainerPath: kid.key, ReadOnly: true})
			continue
		}
		t.usesS3 = t.usesS3 || strings.HasPrefix(uri, "s3://")
		d.becomes(fmt.Sprintf("gbatch.inputs[%d]", len(g.Inputs)), kid)
		g.Inputs = append(g.Inputs, job.Input{URI: uri, Path: kid.key})
	}
}

// readOutputs reads the directories that are saved below the results' root.
func (t *tao) readOutputs(d *decoder) {
	root := strings.TrimSuffix(t.env("TAO_RESULTS_ROOT"), "/")
	switch bucket := t.env("S3_BUCKET_NAME"); {
	case root != "":
		root += "/" + t.id
	case bucket != "":
		root = "s3://" + bucket + "/results/" + t.id
	default:
		d.note(t.outputs, "are not saved: TAO_RESULTS_ROOT and S3_BUCKET_NAME are not set, and what the container writes is gone with it")
		return
	}
	if t.id == "" {
		d.problem(t.outputs, "are saved below a directory of the job's id, and it has none", "give it a job_id")
		return
	}
	if strings.HasPrefix(root, "/") {
		root = "file://" + root
	}
	t.usesS3 = t.usesS3 || strings.HasPrefix(root, "s3://")
	t.set("TAO_RESULTS_ROOT", root)
	g := t.sub.Spec.Gbatch
	for _, dir := range d.strs(t.outputs) {
		d.becomes(fmt.Sprintf("gbatch.outputs[%d]", len(g.Outputs)), t.outputs)
		g.Outputs = append(g.Outputs, job.Output{Path: strings.TrimSuffix(dir, "/"), URI: root + "/" + path.Base(dir) + "/", When: job.WhenAlways})
	}
}

// keys takes the keys of S3 from where TAO has them.
func (t *tao) keys(d *decoder, n *node) {
	g := t.sub.Spec.Gbatch
	g.S3 = &job.S3{Endpoint: t.env("S3_ENDPOINT_URL"), AccessKey: "ACCESS_KEY", SecretKey: "SECRET_KEY"}
	t.sub.Secrets = map[string]string{}
	for _, name := range []string{"ACCESS_KEY", "SECRET_KEY"} {
		value := t.env(name)
		if value == "" {
			d.problem(n, "needs the variable "+name+" for s3://", "set it where the job is submitted")
			continue
		}
		delete(t.sub.Spec.Request.Docker.Environment, name) // a secret is told as one
		g.Secrets = append(g.Secrets, job.Secret{Name: name})
		t.sub.Secrets[name] = value
	}
}

// login takes the registry's password from where TAO has it.
func (t *tao) login(d *decoder, n *node) {
	docker := &t.sub.Spec.Request.Docker
	key := t.env("NGC_KEY")
	r, creds, err := ref.Parse(docker.Image)
	if err != nil || creds != nil || key == "" || !strings.HasPrefix(r.String(), "nvcr.io/") {
		return
	}
	user := t.env("DOCKER_USERNAME")
	if user == "" {
		user = "$oauthtoken"
	}
	delete(docker.Environment, "NGC_KEY")
	docker.Image = r.String()
	t.sub.Registry = &ref.Credentials{Username: user, Password: key}
}
