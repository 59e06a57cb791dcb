package kubernetes

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/foreign"
)

// torchJob is a PyTorchJob on its way to a job: its replicas are ranks of one gang.
type torchJob struct {
	*manifest
	replicas map[string]*replicas // by role
	perNode  string               // processes that torchrun starts on each node
	backoff  *int
	clean    string // which pods are ended when the job has succeeded
	elastic  *elastic
}

// replicas are the pods of one role.
type replicas struct {
	role         string
	count        int
	restart      string
	at, template *node
	k            *manifest
}

// elastic is how torchrun has its processes meet.
type elastic struct {
	at                         *node
	low, high, port, restarts  *int
	backend, id, host, perNode string
	conf                       []string
	standalone                 bool
}

const (
	master, worker = "Master", "Worker"

	torchPort     = 23456 // where no container names another
	torchPortName = "pytorchjob-port"
	torchName     = "pytorch" // of the container that has the port
	torchPrefix   = "training.kubeflow.org/"
)

// pyTorch makes a job of a PyTorchJob.
func (k *manifest) pyTorch(d *decoder, found *node) {
	t := &torchJob{manifest: k, replicas: map[string]*replicas{}, perNode: "auto"}
	if !document.Object(d, found, torchFields(), t) {
		return
	}
	k.spec.Name = cmp.Or(k.jobName(), "job")
	for _, r := range t.replicas {
		if r.template == nil {
			return
		}
	}
	if len(t.replicas) == 0 && d.Count() > 0 {
		return
	}
	if len(t.replicas) == 0 {
		d.Problem(cmp.Or(k.jobSpec, found), "has no replicas: there is nothing to run", "")
		return
	}
	k.inNamespace("")
	parts := t.parts(d)
	if parts == nil {
		return
	}
	k.setOf(d, found, parts)
	t.retry(d)
	if m := t.replicas[master]; m != nil && len(k.spec.Gbatch.OfRanks) > 1 && (t.clean == "Running" || t.clean == "All") {
		k.spec.Gbatch.StopWhen = job.MasterDone
	}
	k.reaches(d, found)
}

func torchFields() []field[torchJob] {
	ofJob := func(read func(*decoder, *node, *manifest)) func(*decoder, *node, *torchJob) {
		return func(d *decoder, n *node, t *torchJob) { read(d, n, t.manifest) }
	}
	policy := []field[torchJob]{
		{"cleanPodPolicy", func(d *decoder, n *node, t *torchJob) { t.clean, _ = d.OneOf(n, "None", "Running", "All") }, false},
		{"ttlSecondsAfterFinished", foreign.Remark[torchJob](history), false},
		{"activeDeadlineSeconds", func(d *decoder, n *node, t *torchJob) { d.Deadline(n, &t.spec, job.LimitJob) }, false},
		{"backoffLimit", func(d *decoder, n *node, t *torchJob) {
			if x, ok := d.Integer(n, 0, 1_000_000); ok {
				t.backoff = &x
			}
		}, false},
		{"schedulingPolicy", foreign.Remark[torchJob]("is not used: all pods start together, and gbatch itself queues the job"), false},
		{"suspend", ofJob(readSuspend), false},
		{"managedBy", func(d *decoder, n *node, _ *torchJob) { d.OneOf(n, "kubeflow.org/training-operator") }, false},
	}
	spec := append([]field[torchJob]{
		{"pytorchReplicaSpecs", func(d *decoder, n *node, t *torchJob) { document.Object(d, n, roleFields, t) }, true},
		{"runPolicy", func(d *decoder, n *node, t *torchJob) { document.Object(d, n, policy, t) }, false},
		{"nprocPerNode", func(d *decoder, n *node, t *torchJob) { t.perNode, _ = d.Scalar(n) }, false},
		{"elasticPolicy", func(d *decoder, n *node, t *torchJob) {
			t.elastic = &elastic{at: n}
			document.Object(d, n, elasticFields, t.elastic)
		}, false},
	}, policy...) // where the first versions had it
	return []field[torchJob]{
		{"apiVersion", func(d *decoder, n *node, _ *torchJob) { d.OneOf(n, "kubeflow.org/v1") }, true},
		{"kind", func(*decoder, *node, *torchJob) {}, true},
		{"metadata", ofJob(func(d *decoder, n *node, k *manifest) { document.Object(d, n, metaFields(), k) }), true},
		{"spec", func(d *decoder, n *node, t *torchJob) {
			t.jobSpec = n
			document.Object(d, n, spec, t)
		}, true},
		{"status", foreign.Remark[torchJob](recorded), false},
	}
}

var roleFields = []field[torchJob]{
	{master, readReplicas, false},
	{worker, readReplicas, false},
}

func readReplicas(d *decoder, n *node, t *torchJob) {
	r := &replicas{role: n.Key, count: 1, restart: "OnFailure", at: n}
	if !document.Object(d, n, replicaFields, r) {
		return
	}
	if r.role == master && r.count != 1 {
		d.Problem(n.Child("replicas"), "must be 1: there is one master", "")
	}
	if r.count > 0 {
		t.replicas[r.role] = r
	}
}

var replicaFields = []field[replicas]{
	{"replicas", func(d *decoder, n *node, r *replicas) { r.count, _ = d.Integer(n, 0, maxTogether-1) }, false},
	{"restartPolicy", func(d *decoder, n *node, r *replicas) {
		r.restart, _ = d.OneOf(n, "Always", "OnFailure", "Never", "ExitCode")
	}, false},
	{"template", func(_ *decoder, n *node, r *replicas) { r.template = n }, true},
}

var elasticFields = []field[elastic]{
	{"minReplicas", func(d *decoder, n *node, e *elastic) { e.low = number(d, n) }, false},
	{"maxReplicas", func(d *decoder, n *node, e *elastic) { e.high = number(d, n) }, false},
	{"rdzvBackend", func(d *decoder, n *node, e *elastic) { e.backend, _ = d.OneOf(n, "c10d", "etcd", "etcd-v2") }, false},
	{"rdzvPort", func(d *decoder, n *node, e *elastic) { e.port = number(d, n) }, false},
	{"rdzvHost", func(d *decoder, n *node, e *elastic) { e.host, _ = d.Str(n) }, false},
	{"rdzvId", func(d *decoder, n *node, e *elastic) { e.id, _ = d.Scalar(n) }, false},
	{"rdzvConf", func(d *decoder, n *node, e *elastic) {
		d.Elements(n, func(n *node) {
			key, value := n.Given("key"), n.Given("value")
			if key != nil && value != nil {
				e.conf = append(e.conf, key.Text+"="+value.Text)
			}
		})
	}, false},
	{"standalone", func(d *decoder, n *node, e *elastic) { e.standalone, _ = d.Boolean(n) }, false},
	{"nProcPerNode", func(d *decoder, n *node, e *elastic) { e.perNode, _ = d.Scalar(n) }, false},
	{"maxRestarts", func(d *decoder, n *node, e *elastic) { e.restarts = number(d, n) }, false},
	{"metrics", foreign.Remark[elastic]("is not used: the job has as many workers as replicas says"), false},
}

func number(d *decoder, n *node) *int {
	if x, ok := d.Integer(n, 0, 1_000_000); ok {
		return &x
	}
	return nil
}

// parts reads the templates: the master's pod is rank 0.
func (t *torchJob) parts(d *decoder) []*part {
	total := 0
	for _, role := range []string{worker, master} { // what is said of the job is said of its first pods
		r := t.replicas[role]
		if r == nil {
			continue
		}
		r.k = t.ofPart()
		r.k.indexed, r.k.restarted = false, "is not used: restartPolicy of the replicas counts"
		for label := range t.labels(r, 0) {
			r.k.ofPods[label] = true
		}
		for name := range t.variables(0, 0) {
			r.k.ofRanks[name] = true
		}
		r.k.podLabels = podLabels(r.template)
		document.Object(d, r.template, templateFields(), r.k)
		if r.k.main == nil {
			return nil
		}
		total += r.count
	}
	var parts []*part
	for _, role := range []string{worker, master} {
		r := t.replicas[role]
		if r == nil {
			continue
		}
		r.k.name = t.jobName()
		r.k.containers(d)
		r.k.labelledGPUs(d)
		r.k.neighbours(d, total > 1, true)
		parts = append([]*part{{k: r.k, at: r.at, pods: t.pods(r, total)}}, parts...)
	}
	return parts
}

// labels are what a cluster labels a pod with.
func (t *torchJob) labels(r *replicas, index int) map[string]string {
	labels := map[string]string{torchPrefix + "job-name": t.jobName(), torchPrefix + "operator-name": "pytorchjob-controller",
		torchPrefix + "replica-type": strings.ToLower(r.role), torchPrefix + "replica-index": strconv.Itoa(index)}
	if r.role == master || t.replicas[master] == nil && index == 0 {
		labels[torchPrefix+"job-role"] = "master"
	}
	return labels
}

func (t *torchJob) host(role string, index int) string {
	return t.jobName() + "-" + strings.ToLower(role) + "-" + strconv.Itoa(index)
}

func (t *torchJob) pods(r *replicas, total int) (list []pod) {
	for i := range r.count {
		rank := i
		if r.role == worker && t.replicas[master] != nil {
			rank++
		}
		list = append(list, pod{host: t.host(r.role, i), labels: t.labels(r, i), variables: t.variables(rank, total)})
	}
	return list
}

// variables are those that the training operator gives each container.
func (t *torchJob) variables(rank, total int) map[string]string {
	vs := map[string]string{"PYTHONUNBUFFERED": "1"}
	if m := t.replicas[master]; m != nil {
		processes := 1
		if x, err := strconv.Atoi(t.perNode); err == nil {
			processes = x
		}
		address, port := t.host(master, 0), strconv.Itoa(portOf(m))
		maps.Copy(vs, map[string]string{"MASTER_ADDR": address, "MASTER_PORT": port, "PET_MASTER_ADDR": address, "PET_MASTER_PORT": port,
			"WORLD_SIZE": strconv.Itoa(total * processes), "RANK": strconv.Itoa(rank), "PET_NODE_RANK": strconv.Itoa(rank), "PET_NPROC_PER_NODE": t.perNode})
	}
	if t.elastic == nil {
		vs["PET_NNODES"] = strconv.Itoa(total)
		return vs
	}
	maps.Copy(vs, t.meeting())
	return vs
}

// meeting are the variables of an elastic job.
func (t *torchJob) meeting() map[string]string {
	e, w := t.elastic, t.replicas[worker]
	vs := map[string]string{"PET_RDZV_BACKEND": cmp.Or(e.backend, "c10d")}
	port, workers := torchPort, 0
	if w != nil {
		port, workers = portOf(w), w.count
	}
	if e.port != nil {
		port = *e.port
	}
	vs["PET_RDZV_ENDPOINT"] = fmt.Sprintf("%s:%d", cmp.Or(e.host, t.host(worker, 0)), port)
	if vs["PET_NNODES"] = strconv.Itoa(workers); e.low != nil && e.high != nil {
		vs["PET_NNODES"] = fmt.Sprintf("%d:%d", *e.low, *e.high)
	}
	if e.restarts != nil {
		vs["PET_MAX_RESTARTS"] = strconv.Itoa(*e.restarts)
	}
	if per := cmp.Or(e.perNode, t.perNode); per != "" {
		vs["PET_NPROC_PER_NODE"] = per
	}
	if e.id != "" {
		vs["PET_RDZV_ID"] = e.id
	}
	if len(e.conf) > 0 {
		vs["PET_RDZV_CONF"] = strings.Join(e.conf, ",")
	}
	if e.standalone {
		vs["PET_STANDALONE"] = ""
	}
	return vs
}

// portOf is the port by which a role's pods meet.
func portOf(r *replicas) int {
	for _, c := range r.template.Given("spec").Given("containers").Kids {
		name, ports := c.Given("name"), c.Given("ports")
		if name == nil || name.Text != torchName || ports == nil {
			continue
		}
		for _, p := range ports.Kids {
			called, port := p.Given("name"), p.Given("containerPort")
			if called != nil && port != nil && called.Text == torchPortName {
				if x, err := strconv.Atoi(port.Text); err == nil {
					return x
				}
			}
		}
	}
	return torchPort
}

// retry has the job begin again as its replicas' restartPolicy has them: a container that
// fails in a cluster begins again alone, here all do.
func (t *torchJob) retry(d *decoder) {
	policies := map[string]bool{}
	for _, r := range t.replicas {
		policies[r.restart] = true
	}
	if len(policies) > 1 {
		d.Problem(t.jobSpec.Child("pytorchReplicaSpecs"), "has replicas with different restartPolicies, and a rank that fails ends the others here", "give all the same")
		return
	}
	if policies["Never"] {
		return
	}
	r := &job.Retry{Backoff: job.DefaultBackoff, MaxWait: job.DefaultMaxWait, JobLimit: t.backoff}
	if t.backoff == nil {
		r.Limit = 1_000_000 // as in a cluster, which sets none
		d.Note(t.jobSpec.Child("pytorchReplicaSpecs"), "is tried again until it ends well or is cancelled, as it has no backoffLimit")
	}
	if policies["ExitCode"] { // those that a program ends with by itself are final
		rule := job.RetryRule{Action: job.FailJob}
		for code := 1; code < 128; code++ {
			rule.ExitCodes = append(rule.ExitCodes, code)
		}
		r.Rules = []job.RetryRule{rule}
	}
	if t.backoff == nil || *t.backoff > 0 {
		t.spec.Gbatch.Retry = r
	}
	if e := t.elastic; e != nil && e.low != nil && e.high != nil && *e.low != *e.high {
		d.Note(e.at, "has as many workers as replicas says, and no more or fewer later")
	}
}
