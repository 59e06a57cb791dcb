package kubernetes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/foreign"
)

// volcanoJob is a Job of Volcano's on its way to a job: its tasks are parts of one gang.
type volcanoJob struct {
	*manifest
	tasks    []*volcanoTask
	plugins  map[string]*node
	policies []*node
	retries  int
	least    *node
}

// volcanoTask is pods of one template.
type volcanoTask struct {
	name         string
	replicas     int
	at, template *node
	policies     []*node
	k            *manifest
}

const (
	volcanoGroup = "batch.volcano.sh/"
	volcanoDir   = "/etc/volcano" // where its plug-in svc has the hosts of each task
)

func ofVolcano(n *node) bool {
	version := n.Given("apiVersion")
	return version != nil && strings.HasPrefix(version.Text, volcanoGroup)
}

// volcano makes a job of a Job of Volcano's.
func (k *manifest) volcano(d *decoder, found *node) {
	v := &volcanoJob{manifest: k, plugins: map[string]*node{}, retries: 3}
	if !document.Object(d, found, volcanoFields(), v) {
		return
	}
	k.spec.Name = cmp.Or(k.jobName(), "job")
	k.inNamespace(k.jobName())
	parts := v.parts(d)
	if len(parts) == 0 {
		return
	}
	v.checkPolicies(d)
	ended := v.ending()
	if ended > 0 {
		parts = slices.Concat(parts[ended:ended+1], parts[:ended], parts[ended+1:])
	}
	qos := k.spec.Gbatch.QOS
	k.setOf(d, found, parts)
	g := k.spec.Gbatch
	if g.QOS = cmp.Or(qos, g.QOS); ended >= 0 {
		stopAfter(g, v.tasks[ended].replicas)
	}
	v.retry(d)
	k.reaches(d, found)
}

func volcanoFields() []field[volcanoJob] {
	policies := func(d *decoder, n *node, v *volcanoJob) {
		d.Elements(n, func(n *node) { v.policies = append(v.policies, n) })
	}
	spec := []field[volcanoJob]{
		{"tasks", readVolcanoTasks, true},
		{"minAvailable", func(d *decoder, n *node, v *volcanoJob) {
			if _, ok := d.Integer(n, 0, maxTogether); ok {
				v.least = n
			}
		}, false},
		{"policies", policies, false},
		{"plugins", readVolcanoPlugins, false},
		{"maxRetry", func(d *decoder, n *node, v *volcanoJob) { v.retries, _ = d.Integer(n, 0, 1_000_000) }, false},
		{"priorityClassName", func(d *decoder, n *node, v *volcanoJob) {
			v.spec.Gbatch.QOS, _ = d.Str(n)
			d.Note(n, "is understood as the qos of that name")
		}, false},
		{"schedulerName", foreign.Remark[volcanoJob]("is not used: gbatch itself schedules the job"), false},
		{"queue", foreign.Remark[volcanoJob](kueue), false},
		{"runningEstimate", foreign.Remark[volcanoJob]("is not used: a time limit is given to gsubmit, -t"), false},
		{"networkTopology", foreign.Remark[volcanoJob]("is not used: where nodes are near each other is the site's, and gbatch chooses them"), false},
		{"ttlSecondsAfterFinished", foreign.Remark[volcanoJob](history), false},
		{"volumes", refuse[volcanoJob]("give each task's template the volume: persistentVolumeClaim, and a volumeMount"), false},
		{"minSuccess", refuse[volcanoJob]("the job has succeeded when all pods have, or by a policy TaskCompleted of one pod"), false},
	}
	return []field[volcanoJob]{
		{"apiVersion", func(d *decoder, n *node, _ *volcanoJob) { d.OneOf(n, volcanoGroup+"v1alpha1") }, true},
		{"kind", func(d *decoder, n *node, _ *volcanoJob) { d.OneOf(n, "Job") }, true},
		{"metadata", func(d *decoder, n *node, v *volcanoJob) { document.Object(d, n, metaFields(), v.manifest) }, true},
		{"spec", func(d *decoder, n *node, v *volcanoJob) {
			v.jobSpec = n
			document.Object(d, n, spec, v)
		}, true},
		{"status", foreign.Remark[volcanoJob](recorded), false},
	}
}

func readVolcanoTasks(d *decoder, n *node, v *volcanoJob) {
	d.Elements(n, func(n *node) {
		t := &volcanoTask{replicas: 1, at: n, name: "default" + strconv.Itoa(len(v.tasks))}
		if document.Object(d, n, volcanoTaskFields, t) && t.replicas > 0 {
			v.tasks = append(v.tasks, t)
		}
	})
}

var volcanoTaskFields = []field[volcanoTask]{
	{"name", func(d *decoder, n *node, t *volcanoTask) { t.name, _ = d.Str(n) }, false},
	{"replicas", func(d *decoder, n *node, t *volcanoTask) { t.replicas, _ = d.Integer(n, 0, maxTogether) }, false},
	{"template", func(_ *decoder, n *node, t *volcanoTask) { t.template = n }, true},
	{"policies", func(d *decoder, n *node, t *volcanoTask) {
		d.Elements(n, func(n *node) { t.policies = append(t.policies, n) })
	}, false},
	{"minAvailable", foreign.Remark[volcanoTask]("is not used: all pods start together"), false},
	{"topologyPolicy", foreign.Remark[volcanoTask]("is not used: cores near the GPUs are chosen by the node"), false},
	{"maxRetry", foreign.Remark[volcanoTask]("is not used: maxRetry of the job counts"), false},
	{"dependsOn", refuse[volcanoTask]("have the command wait for what it needs, as `until nc -z HOST PORT; do sleep 1; done`"), false},
}

// volcanoPlugins are those whose effects are had here.
var volcanoPlugins = []string{"env", "svc", "pytorch"}

func readVolcanoPlugins(d *decoder, n *node, v *volcanoJob) {
	if n.Kind != document.ObjectKind {
		d.WrongKind(n, "an object")
		return
	}
	for _, kid := range n.Kids {
		if kid.Key == "ssh" && !v.loginBetween() {
			d.Note(kid, "is not used: no command here logs in from one pod to another")
			continue
		}
		if !slices.Contains(volcanoPlugins, kid.Key) {
			d.Problem(kid, "is a plug-in that is not known here", "env, svc and pytorch are; programs of MPI find each other without ssh as a batch script: srun --mpi=pmix")
			continue
		}
		v.plugins[kid.Key] = kid
	}
}

// loginBetween says whether commands of the job may log in by ssh from one pod to another.
func (v *volcanoJob) loginBetween() bool {
	logs := false
	eachText(v.found, func(_ *node, text, _ string) {
		for _, word := range []string{"ssh", "mpi", "horovod", "deepspeed", "pdsh"} {
			logs = logs || strings.Contains(strings.ToLower(text), word)
		}
	})
	return logs
}

// parts reads the templates of the tasks, the last first; see jobSet.parts.
func (v *volcanoJob) parts(d *decoder) []*part {
	total := 0
	for _, t := range slices.Backward(v.tasks) {
		if t.template == nil {
			return nil
		}
		t.k = v.ofPart()
		t.k.indexed, t.k.restarted = false, "holds for the job: a pod that fails ends the others"
		for label := range v.labels(t, 0) {
			t.k.ofPods[label] = true
		}
		for name := range v.variables(t, 0) {
			t.k.ofRanks[name] = true
		}
		t.k.podLabels = podLabels(t.template)
		document.Object(d, t.template, templateFields(), t.k)
		if t.k.main == nil {
			return nil
		}
		total += t.replicas
	}
	if total > maxTogether {
		d.Problem(v.jobSpec.Child("tasks"), fmt.Sprintf("have %d pods in all, at most %d are supported", total, maxTogether), "")
		return nil
	}
	if least := v.least; least != nil && least.Text != strconv.Itoa(total) {
		d.Note(least, fmt.Sprintf("is not used: all %d pods start together", total))
	}
	var parts []*part
	for _, t := range slices.Backward(v.tasks) {
		t.k.name = v.jobName()
		t.k.containers(d)
		t.k.labelledGPUs(d)
		t.k.neighbours(d, total > 1, true)
		if v.plugins["svc"] != nil {
			t.k.spec.Gbatch.Files = append(t.k.spec.Gbatch.Files, v.hostFiles()...)
		}
		parts = append([]*part{{k: t.k, at: t.at, pods: v.pods(t)}}, parts...)
	}
	return parts
}

func (v *volcanoJob) labels(t *volcanoTask, index int) map[string]string {
	return map[string]string{"volcano.sh/job-name": v.jobName(), "volcano.sh/task-spec": t.name, "volcano.sh/task-index": strconv.Itoa(index), "volcano.sh/job-namespace": v.namespace}
}

func (v *volcanoJob) host(t *volcanoTask, index int) string {
	return fmt.Sprintf("%s-%s-%d", v.jobName(), t.name, index)
}

// hosts are the names by which a task's pods are called.
func (v *volcanoJob) hosts(t *volcanoTask) (list []string) {
	for i := range t.replicas {
		list = append(list, v.host(t, i)+"."+v.jobName())
	}
	return list
}

// hostFiles are what the plug-in svc has for each task: a line for each of its pods.
func (v *volcanoJob) hostFiles() (list []job.File) {
	for _, t := range v.tasks {
		list = append(list, job.File{Path: volcanoDir + "/" + t.name + ".host", Text: strings.Join(v.hosts(t), "\n")})
	}
	return list
}

func (v *volcanoJob) pods(t *volcanoTask) (list []pod) {
	for i := range t.replicas {
		p := pod{host: v.host(t, i), labels: v.labels(t, i), variables: v.variables(t, i)}
		if v.plugins["svc"] != nil {
			p.domain = v.jobName()
		}
		list = append(list, p)
	}
	return list
}

// variables are those of the plug-ins.
func (v *volcanoJob) variables(t *volcanoTask, index int) map[string]string {
	vs := map[string]string{}
	if v.plugins["env"] != nil {
		vs["VC_TASK_INDEX"], vs["VK_TASK_INDEX"] = strconv.Itoa(index), strconv.Itoa(index)
	}
	if v.plugins["svc"] != nil {
		for _, other := range v.tasks {
			name := "VC_" + strings.ToUpper(strings.ReplaceAll(other.name, "-", "_"))
			vs[name+"_HOSTS"], vs[name+"_NUM"] = strings.Join(v.hosts(other), ","), strconv.Itoa(other.replicas)
		}
	}
	if p := v.plugins["pytorch"]; p != nil {
		maps.Copy(vs, v.torch(p, t, index))
	}
	return vs
}

// torch are the variables of the plug-in pytorch.
func (v *volcanoJob) torch(plugin *node, t *volcanoTask, index int) map[string]string {
	args := map[string]string{"master": "master", "worker": "worker", "port": "23456"}
	for _, arg := range plugin.Kids {
		if name, value, ok := strings.Cut(strings.TrimLeft(arg.Text, "-"), "="); ok {
			args[name] = value
		}
	}
	total, address := 0, ""
	for _, other := range v.tasks {
		if other.name == args["master"] || other.name == args["worker"] {
			total += other.replicas
		}
		if other.name == args["master"] {
			address = v.hosts(other)[0]
		}
	}
	rank := index
	if t.name == args["worker"] && address != "" {
		rank++
	}
	return map[string]string{"MASTER_ADDR": address, "MASTER_PORT": args["port"], "WORLD_SIZE": strconv.Itoa(total), "RANK": strconv.Itoa(rank)}
}

// does says whether a policy is about an event.
func does(policy *node, events ...string) bool {
	var of []string
	if n := policy.Given("event"); n != nil {
		of = append(of, n.Text)
	}
	if n := policy.Given("events"); n != nil {
		for _, kid := range n.Kids {
			of = append(of, kid.Text)
		}
	}
	return slices.ContainsFunc(of, func(e string) bool { return slices.Contains(events, e) })
}

// checkPolicies finds policies that would do something else here, or nothing.
func (v *volcanoJob) checkPolicies(d *decoder) {
	for _, p := range v.policies {
		if does(p, "TaskCompleted") && len(v.tasks) > 1 {
			d.Problem(p, "is about the end of any task, and here the job ends with all of them or with one that is named", "give the policy to the task whose end is the job's")
		}
	}
	all := slices.Clone(v.policies)
	for _, t := range v.tasks {
		all = append(all, t.policies...)
	}
	for _, p := range all {
		action := p.Given("action")
		switch {
		case p.Given("exitCode") != nil:
			d.Problem(p, "is about an exit code, and here each failure of a pod counts alike", "name the event PodFailed")
		case p.Given("timeout") != nil:
			d.Problem(p, "waits before it acts, and here it acts at once", "remove timeout")
		case does(p, "TaskCompleted") && (action == nil || action.Text != "CompleteJob"):
			d.Problem(p, "has something else than the job's end follow that of a task", "write action: CompleteJob, or remove it")
		}
	}
}

// ending is the part by whose end the job has succeeded; -1: all have to end.
func (v *volcanoJob) ending() int {
	for i, t := range v.tasks {
		for _, p := range t.policies {
			action := p.Given("action")
			if does(p, "TaskCompleted") && action != nil && action.Text == "CompleteJob" && len(v.tasks) > 1 {
				return i
			}
		}
	}
	return -1
}

// retry has the job begin again where a policy has it, or its pods' containers.
func (v *volcanoJob) retry(d *decoder) {
	all, again := slices.Clone(v.policies), false
	restarts := false
	for _, t := range v.tasks {
		all = append(all, t.policies...)
		word := t.template.Given("spec").Given("restartPolicy")
		restarts = restarts || word != nil && word.Text != "Never"
	}
	for _, p := range all {
		action := p.Given("action")
		again = again || does(p, "PodFailed", "*") && action != nil && strings.HasPrefix(action.Text, "Restart")
	}
	r := &job.Retry{Backoff: job.DefaultBackoff, MaxWait: job.DefaultMaxWait}
	switch {
	case again && v.retries > 0:
		r.JobLimit = &v.retries
	case restarts && !again:
		r.Limit = 1_000_000
		d.Note(v.jobSpec, "has containers that begin again whenever they fail: the job is tried again until it ends well or is cancelled")
	default:
		return
	}
	v.spec.Gbatch.Retry = r
}
