package kubernetes

import (
	"slices"

	"gbatch/internal/document"
	"gbatch/internal/job/importer/foreign"
)

// podTerm says which pods the job's are to be beside, or may not be.
type podTerm struct {
	at       *node
	topology string       // the label of nodes that are one place
	all      []expression // of the labels of those pods; all are true
	selects  bool         // it has a selector: without one it is about no pod
	foreign  bool         // it is about more than pods of the job's namespace
}

const mustHold, preferred = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"

func readPodAffinity(d *decoder, n *node, k *manifest) {
	document.Object(d, n, []field[manifest]{
		{mustHold, func(d *decoder, n *node, k *manifest) { k.nearTerms = readPodTerms(d, n) }, false},
		{preferred, foreign.Remark[manifest](leastLeft), false},
	}, k)
}

func readPodAntiAffinity(d *decoder, n *node, k *manifest) {
	document.Object(d, n, []field[manifest]{
		{mustHold, func(d *decoder, n *node, k *manifest) { k.apartTerms = readPodTerms(d, n) }, false},
		{preferred, foreign.Remark[manifest](ownShare), false},
	}, k)
}

func readPodTerms(d *decoder, n *node) []podTerm {
	var terms []podTerm
	d.Elements(n, func(n *node) {
		t := podTerm{at: n}
		document.Object(d, n, podTermFields, &t)
		terms = append(terms, t)
	})
	return terms
}

var podTermFields = []field[podTerm]{
	{"topologyKey", func(d *decoder, n *node, t *podTerm) { t.topology, _ = d.Str(n) }, true},
	{"labelSelector", func(d *decoder, n *node, t *podTerm) {
		t.selects = true
		document.Object(d, n, podSelectorFields, t)
	}, false},
	{"namespaces", func(d *decoder, n *node, t *podTerm) { t.foreign = t.foreign || len(d.Strs(n)) > 0 }, false},
	{"namespaceSelector", func(_ *decoder, _ *node, t *podTerm) { t.foreign = true }, false},
	{"matchLabelKeys", func(d *decoder, n *node, _ *podTerm) { d.Strs(n) }, false}, // the job's pods have the same
	{"mismatchLabelKeys", func(d *decoder, n *node, t *podTerm) { t.foreign = t.foreign || len(d.Strs(n)) > 0 }, false},
}

var podSelectorFields = []field[podTerm]{
	{"matchLabels", func(d *decoder, n *node, t *podTerm) {
		if n.Kind != document.ObjectKind {
			d.WrongKind(n, "an object")
			return
		}
		for _, kid := range n.Kids {
			if value, ok := d.Scalar(kid); ok {
				t.all = append(t.all, expression{key: kid.Key, operator: "In", values: []string{value}, at: kid})
			}
		}
	}, false},
	{"matchExpressions", func(d *decoder, n *node, t *podTerm) {
		d.Elements(n, func(n *node) {
			e := expression{at: n}
			if document.Object(d, n, podExpressionFields, &e) {
				t.all = append(t.all, e)
			}
		})
	}, false},
}

var podExpressionFields = []field[expression]{
	expressionFields[0],
	{"operator", func(d *decoder, n *node, e *expression) {
		e.operator, _ = d.OneOf(n, "In", "NotIn", "Exists", "DoesNotExist")
	}, true},
	expressionFields[2],
}

// own says that a term is about pods of this job: they have the labels that it asks for.
func (k *manifest) own(t podTerm) bool {
	return t.selects && !slices.ContainsFunc(t.all, func(e expression) bool { return !k.holds(e) })
}

// holds says that an expression is true of one of the job's pods at least.
func (k *manifest) holds(e expression) bool {
	value, has := k.podLabel(e.key)
	switch e.operator {
	case "In":
		return has && (e.key == indexLabel || slices.Contains(e.values, value))
	case "NotIn":
		return !has || e.key == indexLabel || !slices.Contains(e.values, value)
	case "Exists":
		return has
	default:
		return !has
	}
}

const byHost = "kubernetes.io/hostname"

const ownNode = "is kept: each of these pods has a node of its own"

const indexLabel = "batch.kubernetes.io/job-completion-index" // another for each pod

// podLabel is a label of the job's pods, of their template or one that every cluster
// gives them. A value that only the cluster knows is empty, which nobody asks for.
func (k *manifest) podLabel(key string) (value string, has bool) {
	switch key {
	case "job-name", "batch.kubernetes.io/job-name":
		if len(k.spec.Gbatch.Cron) > 0 { // each job has a number behind it
			return "", true
		}
		return k.name, true
	case "controller-uid", "batch.kubernetes.io/controller-uid":
		return "", true
	case indexLabel:
		return "", k.indexed
	}
	value, has = k.podLabels["metadata.labels "+key]
	return value, has
}

// neighbours decides on the pods that the job's must or may not be beside; several says
// that some of its own run at once, on nodes that gbatch chooses for each, and together that
// each of these is a rank.
func (k *manifest) neighbours(d *decoder, several, together bool) {
	for _, n := range k.spreads {
		if key := n.Given("topologyKey"); together && key != nil && key.Text == byHost {
			k.singly = true
			d.Note(n, ownNode)
		} else {
			d.Problem(n, "is not supported", "name nodes with nodeSelector")
		}
	}
	for _, t := range k.apartTerms {
		if together && k.own(t) {
			k.singly = true
			d.Note(t.at, ownNode)
			continue
		}
		if several && k.own(t) {
			d.Problem(t.at, "keeps pods on nodes of their own, and tasks of a job may share a node",
				"for one rank on each of several nodes submit a native job with gbatch.nodes; remove it if tasks may share a node: each has its cores, memory and GPUs for itself")
			continue
		}
		d.Note(t.at, ownShare)
	}
	for _, t := range k.nearTerms {
		switch {
		case t.foreign || !k.own(t):
			d.Problem(t.at, "is about pods of other jobs, beside which gbatch places no job", "name nodes with nodeSelector")
		case together && t.topology != byHost:
			d.Note(t.at, "is not used: where nodes are near each other is the site's, and gbatch chooses them")
		case several:
			d.Problem(t.at, "keeps pods on one node, and tasks of a job may be on several", "name the node with nodeSelector and kubernetes.io/hostname")
		default:
			d.Note(t.at, "is not used: no other pod of this job runs at the same time")
		}
	}
}
