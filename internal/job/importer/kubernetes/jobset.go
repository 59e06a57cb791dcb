package kubernetes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/foreign"
)

// jobSet is a JobSet on its way to a job: all pods of its jobs are ranks of one gang.
type jobSet struct {
	*manifest
	jobs []*replicated

	subdomain   string
	unnamed     bool // pods have no names
	restarts    int  // of the whole set
	rules       []*node
	targets     []string
	targetsNode *node
	any         bool // one of the targets is enough
	startOrder  string
	inOrder     *node // each part begins when the one before is ready
	coordinator coordinator
}

// replicated is an entry of replicatedJobs: so many jobs of one template.
type replicated struct {
	name, group  string
	replicas     int
	completions  int
	at, template *node
	after        map[string]*node // it begins when these are ready
	k            *manifest
}

type coordinator struct {
	job       string
	index, of int
}

// jobSet makes a job of a JobSet.
func (k *manifest) jobSet(d *decoder, found *node) {
	s := &jobSet{manifest: k}
	if !document.Object(d, found, jobSetFields(), s) {
		return
	}
	k.spec.Name = cmp.Or(k.jobName(), "job")
	k.inNamespace(cmp.Or(s.subdomain, k.jobName()))
	parts := s.parts(d)
	if len(parts) == 0 {
		return
	}
	s.order(d)
	s.failures(d)
	k.setOf(d, found, s.leading(parts))
	s.retry()
	s.master(d)
	k.reaches(d, found)
}

func jobSetFields() []field[jobSet] {
	ofSet := func(read func(*decoder, *node, *manifest)) func(*decoder, *node, *jobSet) {
		return func(d *decoder, n *node, s *jobSet) { read(d, n, s.manifest) }
	}
	spec := []field[jobSet]{
		{"replicatedJobs", readReplicatedJobs, true},
		{"network", func(d *decoder, n *node, s *jobSet) { document.Object(d, n, setNetworkFields, s) }, false},
		{"successPolicy", func(d *decoder, n *node, s *jobSet) { document.Object(d, n, setSuccessFields, s) }, false},
		{"failurePolicy", func(d *decoder, n *node, s *jobSet) { document.Object(d, n, setFailureFields, s) }, false},
		{"startupPolicy", func(d *decoder, n *node, s *jobSet) {
			document.Object(d, n, []field[jobSet]{{"startupPolicyOrder", func(d *decoder, n *node, s *jobSet) {
				if word, _ := d.OneOf(n, "AnyOrder", "InOrder"); word == "InOrder" {
					s.inOrder = n
				}
			}, true}}, s)
		}, false},
		{"coordinator", func(d *decoder, n *node, s *jobSet) { document.Object(d, n, coordinatorFields, &s.coordinator) }, false},
		{"suspend", ofSet(readSuspend), false},
		{"ttlSecondsAfterFinished", foreign.Remark[jobSet](history), false},
		{"managedBy", func(d *decoder, n *node, _ *jobSet) { d.OneOf(n, "jobset.sigs.k8s.io/jobset-controller") }, false},
		{"volumeClaimPolicies", refuse[jobSet]("mount a claim, which is a directory in the project's storage, or an emptyDir"), false},
	}
	return []field[jobSet]{
		{"apiVersion", func(d *decoder, n *node, _ *jobSet) { d.OneOf(n, "jobset.x-k8s.io/v1alpha2") }, true},
		{"kind", func(*decoder, *node, *jobSet) {}, true},
		{"metadata", ofSet(func(d *decoder, n *node, k *manifest) { document.Object(d, n, metaFields(), k) }), true},
		{"spec", func(d *decoder, n *node, s *jobSet) {
			s.jobSpec = n
			document.Object(d, n, spec, s)
		}, true},
		{"status", foreign.Remark[jobSet](recorded), false},
	}
}

var coordinatorFields = []field[coordinator]{
	{"replicatedJob", func(d *decoder, n *node, c *coordinator) { c.job, _ = d.Str(n) }, true},
	{"jobIndex", func(d *decoder, n *node, c *coordinator) { c.index, _ = d.Integer(n, 0, maxTogether) }, false},
	{"podIndex", func(d *decoder, n *node, c *coordinator) { c.of, _ = d.Integer(n, 0, maxTogether) }, false},
}

var setNetworkFields = []field[jobSet]{
	{"enableDNSHostnames", func(d *decoder, n *node, s *jobSet) {
		on, ok := d.Boolean(n)
		s.unnamed = ok && !on
	}, false},
	{"subdomain", func(d *decoder, n *node, s *jobSet) { s.subdomain, _ = d.Str(n) }, false},
	{"publishNotReadyAddresses", foreign.Remark[jobSet]("is not used: ranks know each other before they begin"), false},
}

var setSuccessFields = []field[jobSet]{
	{"operator", func(d *decoder, n *node, s *jobSet) {
		word, _ := d.OneOf(n, "All", "Any")
		if s.any = word == "Any"; s.any {
			s.targetsNode = n
		}
	}, true},
	{"targetReplicatedJobs", func(d *decoder, n *node, s *jobSet) {
		if s.targets = d.Strs(n); len(s.targets) > 0 {
			s.targetsNode = n
		}
	}, false},
}

var setFailureFields = []field[jobSet]{
	{"maxRestarts", func(d *decoder, n *node, s *jobSet) { s.restarts, _ = d.Integer(n, 0, 1_000_000) }, false},
	{"restartStrategy", func(d *decoder, n *node, _ *jobSet) { d.OneOf(n, "Recreate", "BlockingRecreate", "InPlaceRestart") }, false},
	{"rules", func(d *decoder, n *node, s *jobSet) { d.Elements(n, func(n *node) { s.rules = append(s.rules, n) }) }, false},
}

func readReplicatedJobs(d *decoder, n *node, s *jobSet) {
	named := map[string]bool{}
	d.Elements(n, func(n *node) {
		r := &replicated{replicas: 1, at: n, group: "default", after: map[string]*node{}}
		if !document.Object(d, n, replicatedFields, r) {
			return
		}
		if named[r.name] {
			d.Problem(n, fmt.Sprintf("is a second %s", document.Quote(r.name)), "give each a name of its own")
		}
		if named[r.name] = true; r.replicas > 0 {
			s.jobs = append(s.jobs, r)
		}
	})
	if n.Kind == document.ArrayKind && len(n.Kids) == 0 {
		d.Problem(n, "has no jobs: there is nothing to run", "")
	}
}

var replicatedFields = []field[replicated]{
	{"name", func(d *decoder, n *node, r *replicated) { r.name, _ = d.Str(n) }, true},
	{"groupName", func(d *decoder, n *node, r *replicated) { r.group, _ = d.Str(n) }, false},
	{"replicas", func(d *decoder, n *node, r *replicated) { r.replicas, _ = d.Integer(n, 0, maxTogether) }, false},
	{"template", func(_ *decoder, n *node, r *replicated) { r.template = n }, true},
	{"dependsOn", func(d *decoder, n *node, r *replicated) {
		d.Elements(n, func(n *node) {
			status := n.Given("status")
			if status != nil && status.Text == "Complete" {
				d.Problem(n, "has a job begin when another has ended, and all of a set start together here", "submit them as jobs of their own, of which one waits for the other: gsubmit --dependency")
				return
			}
			if name := n.Given("name"); name != nil {
				r.after[name.Text] = n
			}
		})
	}, false},
}

// parts reads the templates of the set, the last first, so that what is said of the job is
// said where its first has it.
func (s *jobSet) parts(d *decoder) []*part {
	pods := 0
	for _, r := range slices.Backward(s.jobs) {
		if r.template == nil {
			return nil
		}
		r.k = s.ofPart()
		for label := range s.labels(r, 0, 0) {
			r.k.ofPods[label] = true
		}
		document.Object(d, r.template, []field[manifest]{
			{"metadata", func(d *decoder, n *node, k *manifest) { document.Object(d, n, metaFields(), &manifest{spec: k.spec}) }, false},
			{"spec", func(d *decoder, n *node, k *manifest) {
				k.jobSpec = n
				document.Object(d, n, specFields(), k)
			}, true},
		}, r.k)
		if r.k.main == nil || r.k.jobSpec == nil {
			return nil
		}
		r.completions = r.count(d)
		pods += r.replicas * r.completions
	}
	if pods > maxTogether {
		d.Problem(s.jobs[0].at.Up, fmt.Sprintf("have %d pods in all, at most %d are supported", pods, maxTogether), "")
		return nil
	}
	var parts []*part
	for _, r := range slices.Backward(s.jobs) {
		r.k.name, r.k.subdomain = s.jobName(), nil
		r.k.containers(d)
		r.k.labelledGPUs(d)
		r.k.retries(d, r.k.jobSpec)
		r.k.neighbours(d, pods > 1, true)
		parts = append([]*part{{k: r.k, at: r.at, pods: s.pods(r)}}, parts...)
	}
	return parts
}

// ofPart is a manifest for one template of several that make one job.
func (k *manifest) ofPart() *manifest {
	own := newManifest()
	own.beside, own.services, own.claims, own.namespace, own.found = k.beside, k.services, k.claims, k.namespace, k.found
	own.indexed, own.runsDynamic = true, true
	own.ofPods, own.askedLabels, own.ofRanks = map[string]bool{}, map[string]bool{}, map[string]bool{}
	return own
}

// count is how many pods one job of a template has, all of which run at once.
func (r *replicated) count(d *decoder) int {
	k := r.k
	n := 1
	switch {
	case k.completions != nil:
		n = *k.completions
	case k.parallelism != nil:
		n = *k.parallelism
	}
	if n == 0 || k.parallelism != nil && *k.parallelism == 0 {
		d.Problem(r.template, "has no pods that run", "remove it")
	}
	if p := 1; k.completions != nil {
		if k.parallelism != nil {
			p = *k.parallelism
		}
		if p < n {
			d.Problem(k.jobSpec.Child("completions"), fmt.Sprintf("is %d, of which %d run at once: pods of a set run together or not at all here", n, p), "raise parallelism to completions, or submit it as a Job")
		}
	}
	if k.enoughIndexes != "" || k.enoughCount > 0 {
		d.Problem(k.jobSpec.Child("successPolicy"), "is about some of the pods of one job", "use successPolicy of the set")
	}
	return max(n, 1)
}

// pods are those of an entry, job by job.
func (s *jobSet) pods(r *replicated) (list []pod) {
	domain := cmp.Or(s.subdomain, s.jobName())
	if s.unnamed {
		domain = ""
	}
	for i := range r.replicas {
		for j := range r.completions {
			list = append(list, pod{host: s.host(r.name, i, j), domain: domain, labels: s.labels(r, i, j),
				variables: map[string]string{"JOB_COMPLETION_INDEX": strconv.Itoa(j), "JOB_COMPLETIONS": strconv.Itoa(r.completions)}})
		}
	}
	return list
}

func (s *jobSet) host(name string, job, pod int) string {
	return fmt.Sprintf("%s-%s-%d-%d", s.jobName(), name, job, pod)
}

// labels are what a cluster labels a pod with, as annotations, too.
func (s *jobSet) labels(r *replicated, i, j int) map[string]string {
	const prefix = "jobset.sigs.k8s.io/"
	all, before, inGroup, beforeInGroup := 0, 0, 0, 0
	seen := false
	for _, other := range s.jobs {
		seen = seen || other == r
		all += other.replicas
		if !seen {
			before += other.replicas
		}
		if other.group == r.group {
			inGroup += other.replicas
			if !seen {
				beforeInGroup += other.replicas
			}
		}
	}
	name := fmt.Sprintf("%s-%s-%d", s.jobName(), r.name, i)
	labels := map[string]string{
		prefix + "jobset-name": s.jobName(), prefix + "replicatedjob-name": r.name,
		prefix + "replicatedjob-replicas": strconv.Itoa(r.replicas), prefix + "global-replicas": strconv.Itoa(all),
		prefix + "job-index": strconv.Itoa(i), prefix + "job-global-index": strconv.Itoa(before + i),
		prefix + "group-name": r.group, prefix + "group-replicas": strconv.Itoa(inGroup), prefix + "job-group-index": strconv.Itoa(beforeInGroup + i),
		prefix + "restart-attempt": "$(GBATCH_RESTART_COUNT)",
		"job-name":                 name, "batch.kubernetes.io/job-name": name, indexLabel: strconv.Itoa(j),
	}
	if c := s.coordinator; c.job != "" {
		labels[prefix+"coordinator"] = s.host(c.job, c.index, c.of) + "." + cmp.Or(s.subdomain, s.jobName())
	}
	return labels
}

// setOf makes the job of parts, with what is said of them together.
func (k *manifest) setOf(d *decoder, found *node, parts []*part) {
	labels, scheduling := map[string]string{}, k.spec.Request.Scheduling
	for _, p := range slices.Backward(parts) {
		maps.Copy(labels, p.k.spec.Gbatch.Labels)
		if p != parts[0] {
			k.shareSecrets(d, parts[0].k, p)
		}
	}
	maps.Copy(labels, k.spec.Gbatch.Labels)
	k.ranks(d, parts)
	k.secrets = parts[0].k.secrets
	k.spec.Name = k.jobName()
	if k.spec.Gbatch.Labels = nil; len(labels) > 0 {
		k.spec.Gbatch.Labels = labels
	}
	if scheduling.MaxDuration > 0 {
		k.spec.Request.Scheduling, k.spec.Gbatch.LimitScope = scheduling, job.LimitJob
	}
	if k.spec.Name == "" {
		d.Missing(cmp.Or(found.Given("metadata"), found), "name", "")
	}
	if k.held != nil && k.queue == "" {
		k.hold = true
		d.Note(k.held, "is on hold: gcancel --release lets it go on")
	}
}

// shareSecrets gives all ranks the secrets of a part: those of a job are all of its ranks'.
func (k *manifest) shareSecrets(d *decoder, to *manifest, of *part) {
	for _, s := range of.k.spec.Gbatch.Secrets {
		if !slices.Contains(to.spec.Gbatch.Secrets, s) {
			to.spec.Gbatch.Secrets = append(to.spec.Gbatch.Secrets, s)
		}
	}
	of.k.spec.Gbatch.Secrets = to.spec.Gbatch.Secrets
	for _, name := range slices.Sorted(maps.Keys(of.k.secrets)) {
		value, had := to.secrets[name]
		if had && value != of.k.secrets[name] {
			d.Problem(of.at, fmt.Sprintf("has another value of the secret %s than the others, and secrets are the job's", document.Quote(name)), "give the variables names of their own")
		}
		foreign.Set(&to.secrets, name, of.k.secrets[name])
	}
}

// failures takes a rule about failures of any of the set's jobs.
func (s *jobSet) failures(d *decoder) {
	if len(s.rules) == 0 {
		return
	}
	rule := s.rules[0]
	action, targets := rule.Given("action"), rule.Given("targetReplicatedJobs")
	if len(s.rules) > 1 || action == nil || rule.Given("onJobFailureReasons") != nil || targets != nil && len(targets.Kids) < len(s.jobs) {
		d.Problem(rule.Up, "tell failures of the set's jobs apart, and one rule about all of them is supported", "use podFailurePolicy of the jobs, whose rules about exit codes decide for the whole")
		return
	}
	switch action.Text {
	case "FailJobSet":
		s.restarts = 0
	case "RestartJobSet":
	case "RestartJobSetAndIgnoreMaxRestarts":
		s.restarts = 1_000_000
	default:
		d.Problem(action, fmt.Sprintf("is %s: a pod that fails ends the others, and all are tried again", document.Quote(action.Text)), "write RestartJobSet or FailJobSet")
	}
}

// retry has the set begin again as often as its jobs, and the set as a whole, may fail.
func (s *jobSet) retry() {
	tries := 1
	for _, r := range s.jobs {
		if retry := r.k.spec.Gbatch.Retry; retry != nil && retry.JobLimit != nil {
			tries = max(tries, *retry.JobLimit+1)
		}
	}
	limit := min(tries*(s.restarts+1)-1, 1_000_000)
	rules := s.jobs[0].k.rules
	if s.spec.Gbatch.Retry = nil; limit > 0 || len(rules) > 0 {
		s.spec.Gbatch.Retry = &job.Retry{Backoff: job.DefaultBackoff, MaxWait: job.DefaultMaxWait, JobLimit: &limit, Rules: rules}
	}
}
