package kubernetes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job/importer/foreign"
	"gbatch/internal/job/importer/kubernetes/products"
)

// readAffinity takes required node affinity: terms of which any will do, each of
// expressions that must all hold.
func readAffinity(d *decoder, n *node, k *manifest) {
	document.Object(d, n, []field[manifest]{
		{"nodeAffinity", func(d *decoder, n *node, k *manifest) {
			document.Object(d, n, []field[manifest]{
				{"requiredDuringSchedulingIgnoredDuringExecution", func(d *decoder, n *node, k *manifest) {
					document.Object(d, n, []field[manifest]{{"nodeSelectorTerms", readTerms, true}}, k)
				}, false},
				{"preferredDuringSchedulingIgnoredDuringExecution", foreign.Remark[manifest](leastLeft), false},
			}, k)
		}, false},
		{"podAffinity", readPodAffinity, false},
		{"podAntiAffinity", readPodAntiAffinity, false},
	}, k)
}

const leastLeft = "is not used: gbatch places jobs so that the least is left over"

const ownShare = "is not used: every job has its cores, memory and GPUs for itself; for a node of its own use gbatch.exclusive of a native job"

type expression struct {
	key, operator string
	values        []string
	at            *node
}

var expressionFields = []field[expression]{
	{"key", func(d *decoder, n *node, e *expression) { e.key, _ = d.Str(n) }, true},
	{"operator", func(d *decoder, n *node, e *expression) {
		e.operator, _ = d.OneOf(n, "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
	}, true},
	{"values", func(d *decoder, n *node, e *expression) { e.values = d.Strs(n) }, false},
}

func readTerms(d *decoder, n *node, k *manifest) {
	var terms [][]expression
	before := d.Count()
	d.Elements(n, func(n *node) {
		var all []expression
		document.Object(d, n, []field[manifest]{{"matchExpressions", func(d *decoder, n *node, _ *manifest) {
			d.Elements(n, func(n *node) {
				e := expression{at: n}
				if document.Object(d, n, expressionFields, &e) {
					all = append(all, e)
				}
			})
		}, true}}, k)
		terms = append(terms, all)
	})
	switch {
	case d.Count() > before:
	case len(terms) == 1:
		for _, e := range terms[0] {
			k.expect(d, e)
		}
	default:
		k.expectAny(d, n, terms)
	}
}

// expect asks for what one expression says of the node's labels.
func (k *manifest) expect(d *decoder, e expression) {
	g := k.spec.Gbatch
	switch {
	case e.operator == "In":
		k.require(d, e.at, e.key, e.values)
	case e.operator == "NotIn" && e.key == "kubernetes.io/hostname":
		g.ExcludeNodes = append(g.ExcludeNodes, e.values...)
	case e.operator == "Gt" && e.key == gpuMemoryLabel && len(e.values) == 1:
		mib, err := strconv.Atoi(e.values[0])
		if err != nil || mib < 0 || mib > 1<<24 {
			d.Problem(e.at, fmt.Sprintf("has the value %s, which is no number of MiB", document.Quote(e.values[0])), "")
			return
		}
		k.labelled.memoryGB = max(k.labelled.memoryGB, mib>>10+1)
		d.Note(e.at, fmt.Sprintf("is understood as GPUs with %d GiB or more", mib>>10+1))
	case e.operator == "Exists" && (products.OfModel(e.key) || e.key == gpuMemoryLabel || e.key == gpuPresentLabel || e.key == "nvidia.com/gpu.count"):
		k.labelled.present = append(k.labelled.present, e)
	case e.operator == "Exists":
		d.Problem(e.at, "asks whether a label exists, which is not supported", "use operator In with the label's values")
	default:
		d.Problem(e.at, fmt.Sprintf("asks by %s, which is not supported for %s", e.operator, document.Quote(e.key)), "name the values that will do, by In; of kubernetes.io/hostname NotIn is known, of "+gpuMemoryLabel+" Gt")
	}
}

const (
	gpuMemoryLabel  = "nvidia.com/gpu.memory"  // in MiB
	gpuPresentLabel = "nvidia.com/gpu.present" // true
)

// maxLists bounds the lists that terms become, and maxAny what each may have.
const maxLists, maxAny = 32, 100

// expectAny asks for nodes of which one of several terms is true. Nodes have features,
// of which gbatch takes lists that must all be met by one of theirs at least: each
// expression of one term, or one of each other.
func (k *manifest) expectAny(d *decoder, n *node, terms [][]expression) {
	if one := sameLabel(terms); one != nil {
		k.expect(d, *one)
		return
	}
	lists, any := [][]string{nil}, 0
	for _, term := range terms {
		var next [][]string
		for _, e := range term {
			any += len(e.values)
		}
		if len(lists)*len(term) > maxLists || any > maxAny {
			d.Problem(n, "has more terms than are supported", "keep fewer of them")
			return
		}
		term = slices.DeleteFunc(slices.Clone(term), func(e expression) bool { return products.OfEveryNode(e.key) && e.operator == "In" })
		if len(term) == 0 {
			return // it is true of every node
		}
		for _, e := range term {
			if e.operator != "In" || ownMeaning(e.key) {
				d.Problem(e.at, "is one of several terms of which any will do, which are known for labels that are features, by In", "keep one of the terms, or use labels of the site's features in all of them")
				return
			}
			for _, list := range lists {
				list = slices.Clone(list)
				for _, v := range e.values {
					if f := e.key + "=" + v; !slices.Contains(list, f) {
						list = append(list, f)
					}
				}
				next = append(next, list)
			}
		}
		lists = next
	}
	d.Becomes("gbatch.anyFeatures", n)
	for _, list := range lists {
		k.spec.Gbatch.AnyFeatures = append(k.spec.Gbatch.AnyFeatures, list)
		d.Note(n, "only nodes that the site gave one of the features "+strings.Join(list, ", "))
	}
}

// sameLabel is terms of one expression each about one label as one expression; nil:
// they are something else.
func sameLabel(terms [][]expression) *expression {
	var all *expression
	for _, term := range terms {
		if len(term) != 1 || term[0].operator != "In" || all != nil && term[0].key != all.key {
			return nil
		}
		if all == nil {
			e := term[0]
			e.values = slices.Clone(e.values)
			all = &e
			continue
		}
		all.values = append(all.values, term[0].values...)
	}
	return all
}

// ownMeaning says that a label is no feature here.
func ownMeaning(label string) bool {
	return products.OfModel(label) || products.OfEveryNode(label) || label == "kubernetes.io/hostname" || label == gpuMemoryLabel
}

// require asks for nodes whose label has one of the values.
func (k *manifest) require(d *decoder, n *node, label string, values []string) {
	g := k.spec.Gbatch
	switch {
	case products.OfEveryNode(label):
		if !slices.Contains(values, "linux") && !slices.Contains(values, "amd64") && !slices.Contains(values, "arm64") {
			d.Problem(n, fmt.Sprintf("is %s, which no node is", document.Quote(strings.Join(values, ", "))), "")
		}
	case label == gpuPresentLabel && slices.Equal(values, []string{"true"}):
		k.labelled.present = append(k.labelled.present, expression{key: label, operator: "In", values: values, at: n})
	case label == "kubernetes.io/hostname":
		g.NodeNames = append(g.NodeNames, values...)
	case products.OfModel(label):
		var models []string
		for _, v := range values {
			models = append(models, products.OfLabel(label, v)...)
		}
		k.labelled.narrow(d, n, models)
	default:
		d.AnyFeature(n, g, label, values...)
	}
}
