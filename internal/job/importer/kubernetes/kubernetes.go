// Package kubernetes reads manifests of batch/v1, Jobs and CronJobs, with their containers,
// of which one becomes the job's own, and config maps and secrets that lie beside them. It
// is pure.
package kubernetes

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/foreign"
	"gbatch/internal/job/importer/kubernetes/mpi"
	"gbatch/internal/job/importer/kubernetes/parts"
	"gbatch/internal/job/indexes"
)

type (
	decoder      = foreign.Decoder
	node         = document.Node
	field[T any] = foreign.Field[T]
)

// Source is the format's name, which a job keeps.
const Source = "kubernetes"

// manifest is a Job or CronJob of batch/v1 on its way to a job.
type manifest struct {
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

	beside      objects
	services    []*node
	hold        bool
	secrets     map[string]string // values that the file has
	jobSpec     *node             // of the Job
	namespace   string
	podLabels   map[string]string // of the template, labels and annotations each with its kind in front
	main        *container
	mainNode    *node
	inits       []*container
	initNodes   []*node
	mates       []*container // beside the main one
	mateNodes   []*node
	along       amounts // of sidecars that begin before what is being read
	ownGPUs     int     // of the job's own container
	kindOfGPUs  *node   // the first container but that which asks for GPUs, where that does not
	together    bool    // the first of them that fails ends the others
	codesOf     *node   // a rule about the exit code of one container
	runsDynamic bool    // something is known on the node only
	queue       string  // of Kueue, which has the job on hold until it may run
	held        *node   // suspend: true
	subdomain   *node   // where pods find each other by name
	found       *node   // the object that is the job
	shares      *node   // containers see each other's processes

	restarted   string          // what the pods' restartPolicy is, where it is no Job's
	ofPods      map[string]bool // labels that not all pods have, or not with one value
	askedLabels map[string]bool // those of them that programs are told
	ofRanks     map[string]bool // variables that an operator gives each pod
	served      []string        // services whose names ranks have

	spreads    []*node   // constraints on how pods are spread over nodes
	nearTerms  []podTerm // pods beside which this job's must run
	apartTerms []podTerm // pods beside which they may not
	singly     bool      // of pods that find each other: each has a node of its own
	labelled   gpuLabels

	rdmaNodes []*node // where devices of fast networks are asked for

	claims    map[string]*claim // by kind and name
	podClaims []podClaim

	volumes     map[string]volume
	fileMounts  []fileMount            // of each file
	fileSecrets map[string]*fileSecret // by the name of the job's own secret
	prefix      string                 // of the native fields of an init container; "": they are the job\'s

	runAs      string // user id
	runAsGroup string
}

// Parse reads a file with a Job or a CronJob, and what else is in it or in the files
// given with it.
func Parse(data []byte, with ...[]byte) (job.Submission, error) {
	d := foreign.New()
	k := newManifest()
	var found *node
	for _, file := range append([][]byte{data}, with...) {
		list, err := parts.Read(file)
		if err != nil {
			return job.Submission{}, err
		}
		for _, n := range list {
			switch {
			case k.takeObject(d, n):
			case found == nil:
				found = n
			case isJob(n) && isJob(found):
				d.Problem(n, "is a second job", "give each job a file of its own: gsubmit takes several")
			case isJob(n):
				alien(d, found)
				found = n
			default:
				alien(d, n)
			}
		}
	}
	if found == nil {
		return job.Submission{}, document.Problems{{Message: "has no Job", Hint: "submit the file that has it, and name this one by --with"}}
	}
	found, launch, ok := mpi.Read(d, found)
	k.found = found
	switch kind := kindOf(found); {
	case !ok:
	case runsOtherwise(d, found):
	case ofVolcano(found):
		k.volcano(d, found)
	case kind == "JobSet":
		k.jobSet(d, found)
	case kind == "PyTorchJob":
		k.pyTorch(d, found)
	case document.Object(d, found, fields(found), k):
		k.combine(d, found)
		k.reaches(d, found)
	}
	mpi.Start(&k.spec, launch)
	for _, s := range k.services {
		if !slices.Contains(k.served, s.Given("metadata").Given("name").Text) {
			d.Note(s.Given("kind"), serviceUnused)
		}
	}
	return d.Finish(job.Submission{Spec: k.spec, Secrets: k.secrets, Hold: k.hold})
}

func newManifest() *manifest {
	return &manifest{spec: job.Spec{Gbatch: &job.Gbatch{Source: Source}}, volumes: map[string]volume{}, fileSecrets: map[string]*fileSecret{}, claims: map[string]*claim{}, podLabels: map[string]string{},
		beside: objects{map[string]*keys{}, map[string]*keys{}}}
}

func kindOf(n *node) string {
	if kind := n.Given("kind"); kind != nil && kind.Kind == document.StringKind {
		return kind.Text
	}
	return ""
}

func isJob(n *node) bool {
	return slices.Contains([]string{"Job", "CronJob", "JobSet", "PyTorchJob", "MPIJob"}, kindOf(n))
}

// alien tells of an object beside the job that has no meaning here.
func alien(d *decoder, n *node) {
	kind := n.Given("kind")
	if kind == nil {
		d.Missing(n, "kind", "")
		return
	}
	d.Problem(kind, fmt.Sprintf("is %s: beside a Job or CronJob, config maps and secrets are read", document.Quote(kind.Text)), "remove it; a job reaches others by gbatch.nodes of a native job, and people reach its ports by gexec --forward")
}

func fields(of *node) []field[manifest] {
	spec := func(d *decoder, n *node, k *manifest) {
		k.jobSpec = n
		document.Object(d, n, specFields(), k)
	}
	if kind := of.Given("kind"); kind != nil && kind.Text == "CronJob" {
		spec = func(d *decoder, n *node, k *manifest) {
			k.spec.Gbatch.CronOverlap = true // unless its concurrencyPolicy says otherwise
			document.Object(d, n, cronFields(), k)
		}
	}
	return []field[manifest]{
		{"apiVersion", func(d *decoder, n *node, _ *manifest) { readVersion(d, n, of) }, true},
		{"kind", func(d *decoder, n *node, _ *manifest) { d.OneOf(n, "Job", "CronJob") }, true},
		{"metadata", func(d *decoder, n *node, k *manifest) { document.Object(d, n, metaFields(), k) }, false},
		{"spec", spec, true},
		{"status", foreign.Remark[manifest](recorded), false},
	}
}

// readVersion takes the version of before, too, where CronJob was the same in it.
func readVersion(d *decoder, n *node, of *node) {
	if kind := of.Given("kind"); n.Text == "batch/v1beta1" && kind != nil && kind.Text == "CronJob" {
		d.Note(n, "is read as batch/v1, which it became")
		return
	}
	d.OneOf(n, "batch/v1")
}

func metaFields() []field[manifest] {
	record, noted := refuse[manifest]("it is the cluster's record of a job: remove it"), foreign.Remark[manifest](recorded)
	return []field[manifest]{
		{"name", func(d *decoder, n *node, k *manifest) { k.name, _ = d.Str(n); d.Becomes("name", n) }, false},
		{"generateName", func(d *decoder, n *node, k *manifest) { k.generateName, _ = d.Str(n); d.Becomes("name", n) }, false},
		{"namespace", func(d *decoder, n *node, k *manifest) {
			k.namespace, _ = d.Str(n)
			d.Note(n, unused["Namespace"])
		}, false},
		{"labels", readJobLabels, false},
		{"annotations", readLabels, false},
		{"resourceVersion", record, false}, {"ownerReferences", record, false}, {"finalizers", record, false},
		{"uid", noted, false}, {"creationTimestamp", noted, false}, {"managedFields", noted, false}, {"generation", noted, false}, {"selfLink", noted, false},
	}
}

const recorded = "is not used: it is a cluster's record of a job"

func specFields() []field[manifest] {
	return []field[manifest]{
		{"template", func(d *decoder, n *node, k *manifest) {
			k.podLabels = podLabels(n)
			document.Object(d, n, templateFields(), k)
		}, true},
		{"completions", count(job.MaxTasks, func(k *manifest) **int { return &k.completions }), false},
		{"parallelism", count(job.MaxTasks, func(k *manifest) **int { return &k.parallelism }), false},
		{"completionMode", func(d *decoder, n *node, k *manifest) {
			word, _ := d.OneOf(n, "Indexed", "NonIndexed")
			k.indexed = word == "Indexed"
		}, false},
		{"backoffLimit", count(math.MaxInt32, func(k *manifest) **int { return &k.backoffLimit }), false},
		{"backoffLimitPerIndex", count(math.MaxInt32, func(k *manifest) **int { return &k.backoffPerIndex }), false},
		{"maxFailedIndexes", count(job.MaxTasks, func(k *manifest) **int { return &k.maxFailed }), false},
		{"activeDeadlineSeconds", func(d *decoder, n *node, k *manifest) { d.Deadline(n, &k.spec, job.LimitJob) }, false},
		{"podFailurePolicy", readFailurePolicy, false},
		{"successPolicy", readSuccessPolicy, false},
		{"suspend", readSuspend, false},
		{"ttlSecondsAfterFinished", foreign.Remark[manifest](history), false},
		{"podReplacementPolicy", foreign.Remark[manifest]("is not used: a task is tried again when the try before has ended"), false},
		{"manualSelector", foreign.Remark[manifest](noObjects), false},
		{"selector", foreign.Remark[manifest](noObjects), false},
		{"managedBy", refuse[manifest]("remove it: gbatch itself runs the job"), false},
	}
}

const noObjects = "is not used: there are no pods to select"

// count reads a number for which 0 is something else than nothing.
func count(high int, to func(*manifest) **int) func(*decoder, *node, *manifest) {
	return func(d *decoder, n *node, k *manifest) {
		if x, ok := d.Integer(n, 0, high); ok {
			*to(k) = &x
		}
	}
}

func readFailurePolicy(d *decoder, n *node, k *manifest) {
	document.Object(d, n, []field[manifest]{{"rules", func(d *decoder, n *node, k *manifest) {
		d.Elements(n, func(n *node) {
			var r job.RetryRule
			before := d.Count()
			if codes := n.Given("onExitCodes"); codes != nil && codes.Given("containerName") != nil {
				k.codesOf = codes.Given("containerName")
			}
			if document.Object(d, n, ruleFields, &r); d.Count() == before {
				d.Becomes(fmt.Sprintf("gbatch.retry.rules[%d]", len(k.rules)), n)
				k.rules = append(k.rules, r)
			}
		})
	}, true}}, k)
}

var actions = map[string]string{"FailJob": job.FailJob, "FailIndex": job.FailTask, "Ignore": job.Ignore, "Count": job.Count}

var ruleFields = []field[job.RetryRule]{
	{"action", func(d *decoder, n *node, r *job.RetryRule) {
		word, _ := d.OneOf(n, "FailJob", "FailIndex", "Ignore", "Count")
		r.Action = actions[word]
	}, true},
	{"onExitCodes", func(d *decoder, n *node, r *job.RetryRule) { document.Object(d, n, exitFields, r) }, false},
	{"onPodConditions", func(d *decoder, n *node, r *job.RetryRule) {
		d.Elements(n, func(n *node) { document.Object(d, n, conditionFields, r) })
	}, false},
}

var exitFields = []field[job.RetryRule]{
	{"containerName", func(d *decoder, n *node, _ *job.RetryRule) { d.Str(n) }, false}, // see containers
	{"operator", func(d *decoder, n *node, _ *job.RetryRule) { d.OneOf(n, "In", "NotIn") }, true},
	{"values", func(d *decoder, n *node, r *job.RetryRule) {
		to, low := &r.ExitCodes, 1
		if op := n.Up.Child("operator"); op != nil && op.Text == "NotIn" {
			to, low = &r.NotExitCodes, 0 // success is no failure, and may be listed
		}
		d.Elements(n, func(n *node) {
			if c, ok := d.Integer(n, low, 255); ok {
				*to = append(*to, c)
			}
		})
	}, true},
}

var conditionFields = []field[job.RetryRule]{
	{"type", func(d *decoder, n *node, r *job.RetryRule) {
		if word, ok := d.Str(n); ok && word != "DisruptionTarget" {
			d.Problem(n, fmt.Sprintf("is %s: only DisruptionTarget is known here", document.Quote(word)), "remove the condition")
		}
		r.Reasons = []job.Reason{job.NodeFail, job.GPUError, job.Preempted, job.Server, job.Prolog}
	}, true},
	{"status", func(d *decoder, n *node, _ *job.RetryRule) { d.OneOf(n, "True") }, false},
}

func readSuccessPolicy(d *decoder, n *node, k *manifest) {
	document.Object(d, n, []field[manifest]{{"rules", func(d *decoder, n *node, k *manifest) {
		if n.Kind == document.ArrayKind && len(n.Kids) > 1 {
			d.Problem(n, fmt.Sprintf("has %d rules, one is supported", len(n.Kids)), "keep one of them")
			return
		}
		d.Elements(n, func(n *node) {
			document.Object(d, n, []field[manifest]{
				{"succeededIndexes", func(d *decoder, n *node, k *manifest) { d.Word(n, &k.enoughIndexes, "gbatch.tasks.enoughIndexes") }, false},
				{"succeededCount", func(d *decoder, n *node, k *manifest) {
					k.enoughCount, _ = d.Integer(n, 1, job.MaxTasks)
					d.Becomes("gbatch.tasks.enoughCount", n)
				}, false},
			}, k)
		})
	}, true}}, k)
}

// combine makes of what was read what only makes sense together.
func (k *manifest) combine(d *decoder, n *node) {
	k.spec.Name = cmp.Or(k.name, strings.TrimRight(k.generateName, "-"))
	if k.spec.Name == "" {
		d.Missing(cmp.Or(n.Given("metadata"), n), "name", "")
		k.spec.Name = "job"
	}
	if k.held != nil && k.queue == "" {
		k.hold = true
		d.Note(k.held, "is on hold: gcancel --release lets it go on")
	}
	if k.main != nil {
		if k.subdomain != nil {
			k.inNamespace(k.subdomain.Text)
		}
		k.containers(d)
		k.labelledGPUs(d)
	}
	if k.jobSpec != nil {
		k.tasks(d, k.jobSpec)
		k.retries(d, k.jobSpec)
	}
}

// tasks turns completions and parallelism into tasks.
func (k *manifest) tasks(d *decoder, n *node) {
	completions, parallelism := 1, 1
	if k.completions != nil {
		completions = *k.completions
	}
	if k.parallelism != nil {
		parallelism = *k.parallelism
	}
	switch {
	case k.completions != nil && completions == 0:
		d.Problem(n.Child("completions"), "is 0: there is nothing to run", "")
		return
	case parallelism == 0:
		d.Problem(n.Child("parallelism"), "is 0, which means that nothing runs", "submit it with gsubmit --hold, and let it go on with gcancel --release")
		return
	case k.indexed && k.completions == nil:
		d.Missing(n, "completions", "it is required with completionMode Indexed")
		return
	case k.completions == nil && parallelism > 1: // workers of one queue: each ends when that is empty
		completions = parallelism
		d.Note(n.Child("parallelism"), "is above 1 without completions: it is as many tasks, of which each has to end well, where in a cluster it is enough that one did and the others ended")
	}
	together := k.meet(d, n, completions, parallelism)
	k.neighbours(d, completions > 1 && parallelism > 1, together)
	if together {
		k.gang(d, n, completions)
		return
	}
	if completions == 1 && !k.indexed {
		return
	}
	if !k.indexed && k.completions != nil {
		d.Note(n.Child("completions"), "are tasks with an index each, as with completionMode Indexed")
	}
	t := &job.Tasks{Indexes: indexes.First(completions), EnoughIndexes: k.enoughIndexes, EnoughCount: k.enoughCount, MaxFailed: k.maxFailed}
	if parallelism < completions {
		t.Parallelism = parallelism
	}
	k.spec.Gbatch.Tasks = t
}

// meet says whether a job's pods look for each other: by the names of a subdomain, or by a
// service of the file that selects them. Then all of them have to run at once.
func (k *manifest) meet(d *decoder, n *node, completions, parallelism int) bool {
	pods := indexedPods(k.jobName(), "", completions)
	switch {
	case k.main == nil || completions > maxTogether:
		return false
	case k.subdomain == nil || !k.indexed:
		if k.subdomain != nil && completions > 1 {
			d.Note(k.subdomain, "is not used: pods have names in it with completionMode Indexed only")
		}
		if !k.indexed && completions > 1 || k.found == nil || !k.calls(k.found, pods) {
			return false
		}
		k.inNamespace("")
	}
	if parallelism < completions {
		d.Problem(n.Child("parallelism"), fmt.Sprintf("is %d of %d pods that find each other, which run together or not at all here", parallelism, completions), "raise it to completions, or remove the subdomain or service if the pods do not look for each other")
	}
	return true
}

// maxTogether bounds the pods of a job that find each other: each is told of all others.
const maxTogether = 1024

// inNamespace gives a job a namespace whose pods have names: the one that the file gives
// them, else that of kubectl.
func (k *manifest) inNamespace(domain string) {
	if k.namespace == "" && domain != "" && k.found != nil {
		k.namespace = namedIn(k.found, domain)
	}
	k.namespace = cmp.Or(k.namespace, "default")
}

// retries turns the limits on failures into a retry; the defaults are those of
// Kubernetes: 6 failures in all, or none of its own if each index has a limit.
func (k *manifest) retries(d *decoder, n *node) {
	limit := 6
	if k.backoffLimit != nil {
		limit = *k.backoffLimit
	}
	r := &job.Retry{Backoff: job.DefaultBackoff, MaxWait: job.DefaultMaxWait, Rules: k.rules}
	switch per := k.backoffPerIndex; {
	case per == nil:
		r.JobLimit = &limit
	case !k.indexed:
		d.Problem(n.Child("backoffLimitPerIndex"), "needs completionMode Indexed", "")
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
		d.Problem(n.Child("maxFailedIndexes"), "needs backoffLimitPerIndex", "")
	}
	if r.Limit == 0 && r.JobLimit == nil { // no task is tried again
		if len(k.rules) > 0 {
			d.Problem(n.Child("podFailurePolicy"), "cannot be combined with a backoffLimitPerIndex of 0", "raise it to 1 or more")
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
