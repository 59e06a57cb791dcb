package kubernetes

import "strings"

func readLabels(d *decoder, n *node, k *manifest) { d.Labels(n, k.spec.Gbatch) }

// queueLabel names a queue of Kueue, which lets jobs begin.
const queueLabel = "kueue.x-k8s.io/queue-name"

func readJobLabels(d *decoder, n *node, k *manifest) {
	readLabels(d, n, k)
	if q := n.Given(queueLabel); q != nil {
		k.queue = strings.Clone(q.Text)
		d.Note(q, "is kept as a label: gbatch itself queues the job, by the share of its project")
	}
}

// podLabels are those that a program can be told by the downward API, each with its
// kind in front.
func podLabels(template *node) map[string]string {
	all := map[string]string{}
	meta := template.Given("metadata")
	for _, kind := range []string{"labels", "annotations"} {
		if meta == nil || meta.Given(kind) == nil {
			continue
		}
		for _, kid := range meta.Given(kind).Kids {
			all["metadata."+kind+" "+kid.Key] = strings.Clone(kid.Text)
		}
	}
	return all
}
