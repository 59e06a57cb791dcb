package importer

import (
	"fmt"
	"math"
	"strings"

	"gbatch/internal/job"
)

// kubeJob is a batch/v1 Job on its way to a job.
type kubeJob struct {
	spec job.Spec

	name, generateName string
	completions        *int
	parallelism        *int
	indexed            bool
	backoffLimit       *int
	backoffPerIndex    *int
	maxFailed          *int
	rules              []job.RetryRule
	enoughIndexes      string
	enoughCount        int

	volumes    map[string]kubeVolume
	runAs      string // user id
	runAsGroup string
}

// parseKubernetes reads a Job manifest of batch/v1 with one container.
func parseKubernetes(data []byte, _ Options) (job.Submission, error) {
	n, err := readTree(data)
	if err != nil {
		return job.Submission{}, err
	}
	d := &decoder{}
	k := &kubeJob{spec: job.Spec{Gbatch: &job.Gbatch{Source: string(Kubernetes)}}, volumes: map[string]kubeVolume{}}
	if object(d, n, kubeFields(), k) {
		k.settle(d, n)
	}
	return d.finish(job.Submission{Spec: k.spec})
}

func kubeFields() []field[kubeJob] {
	return []field[kubeJob]{
		{"apiVersion", func(d *decoder, n *node, _ *kubeJob) { d.oneOf(n, "batch/v1") }, true},
		{"kind", func(d *decoder, n *node, _ *kubeJob) { d.oneOf(n, "Job") }, true},
		{"metadata", func(d *decoder, n *node, k *kubeJob) { object(d, n, kubeMetaFields(), k) }, false},
		{"spec", func(d *decoder, n *node, k *kubeJob) { object(d, n, kubeSpecFields(), k) }, true},
		{"status", refuse[kubeJob]("it is the cluster's record of a job: remove it"), false},
	}
}

func kubeMetaFields() []field[kubeJob] {
	record := refuse[kubeJob]("it is the cluster's record of a job: remove it")
	return []field[kubeJob]{
		{"name", func(d *decoder, n *node, k *kubeJob) { k.name, _ = d.str(n); d.becomes("name", n) }, false},
		{"generateName", func(d *decoder, n *node, k *kubeJob) { k.generateName, _ = d.str(n); d.becomes("name", n) }, false},
		{"namespace", remark[kubeJob]("is not used: the job is billed to a project, which gsubmit --project names"), false},
		{"labels", kubeLabels, false},
		{"annotations", kubeLabels, false},
		{"uid", record, false}, {"resourceVersion", record, false}, {"creationTimestamp", record, false}, {"ownerReferences", record, false},
		{"managedFields", record, false}, {"finalizers", record, false}, {"generation", record, false},
	}
}

func kubeSpecFields() []field[kubeJob] {
	return []field[kubeJob]{
		{"template", func(d *decoder, n *node, k *kubeJob) { object(d, n, kubeTemplateFields(), k) }, true},
		{"completions", count(0, job.MaxTasks, func(k *kubeJob) **int { return &k.completions }), false},
		{"parallelism", count(0, job.MaxTasks, func(k *kubeJob) **int { return &k.parallelism }), false},
		{"completionMode", func(d *decoder, n *node, k *kubeJob) {
			word, _ := d.oneOf(n, "Indexed", "NonIndexed")
			k.indexed = word == "Indexed"
		}, false},
		{"backoffLimit", count(0, math.MaxInt32, func(k *kubeJob) **int { return &k.backoffLimit }), false},
		{"backoffLimitPerIndex", count(0, math.MaxInt32, func(k *kubeJob) **int { return &k.backoffPerIndex }), false},
		{"maxFailedIndexes", count(0, job.MaxTasks, func(k *kubeJob) **int { return &k.maxFailed }), false},
		{"activeDeadlineSeconds", func(d *decoder, n *node, k *kubeJob) { d.deadline(n, &k.spec, job.LimitJob) }, false},
		{"podFailurePolicy", kubeFailurePolicy, false},
		{"successPolicy", kubeSuccessPolicy, false},
		{"suspend", func(d *decoder, n *node, _ *kubeJob) {
			if on, ok := d.boolean(n); ok && on {
				d.problem(n, "is not supported in a file", "submit it with gsubmit --hold, and let it go on with gcancel --release")
			}
		}, false},
		{"ttlSecondsAfterFinished", remark[kubeJob]("is not used: how long ended jobs are shown is set by the site, and gacct knows them longer"), false},
		{"podReplacementPolicy", remark[kubeJob]("is not used: a task is tried again when the try before has ended"), false},
		{"manualSelector", remark[kubeJob](kubeObjects), false},
		{"selector", remark[kubeJob](kubeObjects), false},
		{"managedBy", refuse[kubeJob]("remove it: gbatch itself runs the job"), false},
	}
}

const kubeObjects = "is not used: there are no pods to select"

// count reads a number for which 0 is something else than nothing.
func count(low, high int, to func(*kubeJob) **int) func(*decoder, *node, *kubeJob) {
	return func(d *decoder, n *node, k *kubeJob) {
		if x, ok := d.integer(n, low, high); ok {
			*to(k) = &x
		}
	}
}

// deadline reads a limit in seconds.
func (d *decoder) deadline(n *node, s *job.Spec, scope string) {
	x, ok := d.integer(n, 1, int(job.MaxDuration))
	if !ok {
		return
	}
	if x < 60 {
		d.note(n, fmt.Sprintf("is %d seconds, and a minute is the shortest limit: one minute is used", x))
		x = 60
	}
	s.Request.Scheduling.MaxDuration, s.Gbatch.LimitScope = job.Duration(x), scope
	d.becomes("request.scheduling.maxDuration", n)
}

// kubeLabels keeps labels and annotations.
func kubeLabels(d *decoder, n *node, k *kubeJob) {
	if n.kind != objectKind {
		d.wrongKind(n, "an object")
		return
	}
	for _, kid := range n.kids {
		text, ok := d.scalar(kid)
		if !ok {
			continue
		}
		if k.spec.Gbatch.Labels == nil {
			k.spec.Gbatch.Labels = map[string]string{}
		}
		k.spec.Gbatch.Labels[kid.key] = text
		d.becomes(member("gbatch.labels", kid.key), kid)
	}
}

func kubeFailurePolicy(d *decoder, n *node, k *kubeJob) {
	object(d, n, []field[kubeJob]{{"rules", func(d *decoder, n *node, k *kubeJob) {
		d.elements(n, func(n *node) {
			var r job.RetryRule
			before := len(d.found)
			if object(d, n, kubeRuleFields, &r); len(d.found) == before {
				d.becomes(fmt.Sprintf("gbatch.retry.rules[%d]", len(k.rules)), n)
				k.rules = append(k.rules, r)
			}
		})
	}, true}}, k)
}

var kubeActions = map[string]string{"FailJob": job.FailJob, "FailIndex": job.FailTask, "Ignore": job.Ignore, "Count": job.Count}

var kubeRuleFields = []field[job.RetryRule]{
	{"action", func(d *decoder, n *node, r *job.RetryRule) {
		word, _ := d.oneOf(n, "FailJob", "FailIndex", "Ignore", "Count")
		r.Action = kubeActions[word]
	}, true},
	{"onExitCodes", func(d *decoder, n *node, r *job.RetryRule) { object(d, n, kubeExitFields, r) }, false},
	{"onPodConditions", func(d *decoder, n *node, r *job.RetryRule) {
		d.elements(n, func(n *node) { object(d, n, kubeConditionFields, r) })
	}, false},
}

var kubeExitFields = []field[job.RetryRule]{
	{"containerName", func(d *decoder, n *node, _ *job.RetryRule) { d.str(n) }, false},
	{"operator", func(d *decoder, n *node, _ *job.RetryRule) { d.oneOf(n, "In", "NotIn") }, true},
	{"values", func(d *decoder, n *node, r *job.RetryRule) {
		to, low := &r.ExitCodes, 1
		if op := n.up.child("operator"); op != nil && op.text == "NotIn" {
			to, low = &r.NotExitCodes, 0 // success is no failure, and may be listed
		}
		d.elements(n, func(n *node) {
			if c, ok := d.integer(n, low, 255); ok {
				*to = append(*to, c)
			}
		})
	}, true},
}

var kubeConditionFields = []field[job.RetryRule]{
	{"type", func(d *decoder, n *node, r *job.RetryRule) {
		if word, ok := d.str(n); ok && word != "DisruptionTarget" {
			d.problem(n, fmt.Sprintf("is %s: only DisruptionTarget is known here", quote(word)), "remove the condition")
		}
		r.Reasons = []job.Reason{job.NodeFail, job.GPUError, job.Preempted, job.Server}
	}, true},
	{"status", func(d *decoder, n *node, _ *job.RetryRule) { d.oneOf(n, "True") }, false},
}

func kubeSuccessPolicy(d *decoder, n *node, k *kubeJob) {
	object(d, n, []field[kubeJob]{{"rules", func(d *decoder, n *node, k *kubeJob) {
		if n.kind == arrayKind && len(n.kids) > 1 {
			d.problem(n, fmt.Sprintf("has %d rules, one is supported", len(n.kids)), "keep one of them")
			return
		}
		d.elements(n, func(n *node) {
			object(d, n, []field[kubeJob]{
				{"succeededIndexes", func(d *decoder, n *node, k *kubeJob) {
					k.enoughIndexes, _ = d.scalar(n)
					d.becomes("gbatch.tasks.enoughIndexes", n)
				}, false},
				{"succeededCount", func(d *decoder, n *node, k *kubeJob) {
					k.enoughCount, _ = d.integer(n, 1, job.MaxTasks)
					d.becomes("gbatch.tasks.enoughCount", n)
				}, false},
			}, k)
		})
	}, true}}, k)
}

// settle makes of what was read what only makes sense together.
func (k *kubeJob) settle(d *decoder, n *node) {
	k.spec.Name = k.name
	if k.spec.Name == "" {
		k.spec.Name = strings.TrimRight(k.generateName, "-")
	}
	if k.spec.Name == "" {
		meta := n.given("metadata")
		if meta == nil {
			meta = n
		}
		d.missing(meta, "name", "")
		k.spec.Name = "job"
	}
	if user := k.runAs; user != "" || k.runAsGroup != "" {
		if user == "" {
			user = "0"
		}
		if k.runAsGroup != "" {
			user += ":" + k.runAsGroup
		}
		k.spec.Request.Docker.User = user
	}
	if spec := n.given("spec"); spec != nil {
		k.tasks(d, spec)
		k.retries(d, spec)
	}
}

// tasks turns completions and parallelism into tasks.
func (k *kubeJob) tasks(d *decoder, n *node) {
	completions, parallelism := 1, 1
	if k.completions != nil {
		completions = *k.completions
	}
	if k.parallelism != nil {
		parallelism = *k.parallelism
	}
	switch {
	case k.completions != nil && completions == 0:
		d.problem(n.child("completions"), "is 0: there is nothing to run", "")
		return
	case parallelism == 0:
		d.problem(n.child("parallelism"), "is 0, which means that nothing runs", "submit it with gsubmit --hold, and let it go on with gcancel --release")
		return
	case k.completions == nil && parallelism > 1:
		d.problem(n.child("parallelism"), "is above 1 without \"completions\": workers of a queue whose number of tasks is open are not supported",
			"give completions, the number of tasks")
		return
	case k.indexed && k.completions == nil:
		d.missing(n, "completions", "it is required with completionMode Indexed")
		return
	}
	if completions == 1 && !k.indexed {
		return
	}
	if !k.indexed {
		d.note(n.child("completions"), "are tasks with an index each, as with completionMode Indexed")
	}
	t := &job.Tasks{Indexes: job.FirstIndexes(completions), EnoughIndexes: k.enoughIndexes, EnoughCount: k.enoughCount, MaxFailed: k.maxFailed}
	if parallelism < completions {
		t.Parallelism = parallelism
	}
	k.spec.Gbatch.Tasks = t
}

// retries turns the limits on failures into a retry; the defaults are those of
// Kubernetes: 6 failures in all, or none of its own if each index has a limit.
func (k *kubeJob) retries(d *decoder, n *node) {
	limit := 6
	if k.backoffLimit != nil {
		limit = *k.backoffLimit
	}
	r := &job.Retry{Backoff: job.DefaultBackoff, MaxWait: job.DefaultMaxWait, Rules: k.rules}
	switch per := k.backoffPerIndex; {
	case per == nil:
		r.JobLimit = &limit
	case !k.indexed:
		d.problem(n.child("backoffLimitPerIndex"), "needs completionMode Indexed", "")
	default:
		if r.Limit = *per; k.backoffLimit != nil && limit < 1_000_000 {
			r.JobLimit = &limit
		}
	}
	if r.JobLimit != nil {
		*r.JobLimit = min(*r.JobLimit, 1_000_000)
	}
	r.Limit = min(r.Limit, 1_000_000)
	if k.maxFailed != nil && k.backoffPerIndex == nil {
		d.problem(n.child("maxFailedIndexes"), "needs backoffLimitPerIndex", "")
	}
	if r.Limit == 0 && r.JobLimit == nil { // no task is tried again
		if len(k.rules) > 0 {
			d.problem(n.child("podFailurePolicy"), "cannot be combined with a backoffLimitPerIndex of 0", "raise it to 1 or more")
		}
		return
	}
	if k.backoffPerIndex != nil && *k.backoffPerIndex == 0 {
		// The whole job's limit is then one on failed tasks.
		if t := k.spec.Gbatch.Tasks; t != nil && t.MaxFailed == nil {
			t.MaxFailed = r.JobLimit
		}
		return
	}
	k.spec.Gbatch.Retry = r
}
