package kubernetes

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/foreign"
	"gbatch/internal/job/importer/kubernetes/names"
)

// A job whose pods find each other becomes a gang: its pods are ranks that start together,
// with the names that they have in a cluster. They may share nodes, as there.

// part is pods that are made by one template.
type part struct {
	k    *manifest // that has read it
	at   *node
	pods []pod
}

// pod is one of them.
type pod struct {
	host      string
	domain    string            // in which all find it by its name, below those of the namespace; empty: none
	labels    map[string]string // that the others have not
	variables map[string]string // likewise
}

// ranks makes one job of parts: what the first asks for and runs is the job's, what others
// have instead is their group's, and the names and variables of each pod are its rank's.
func (k *manifest) ranks(d *decoder, parts []*part) {
	first := parts[0].k
	if host := parts[0].pods[0].host; !names.IsHost(host) {
		at := cmp.Or(k.found.Given("metadata"), k.found)
		d.Problem(cmp.Or(at.Given("name"), at), fmt.Sprintf("makes pods whose host is called %s, which is no name of a host", document.Quote(host)), "have the name of lower-case letters, digits and -")
		k.spec = first.spec
		return
	}
	spec := &first.spec
	shared := commonVariables(parts)
	var groups []job.Group
	pods := 0
	for i, p := range parts {
		pods += len(p.pods)
		if i > 0 {
			k.alike(d, parts[0], p)
		}
		g := groupOf(p)
		if last := len(groups) - 1; last >= 0 && sameGroup(groups[last], g) {
			groups[last].Nodes += g.Nodes
		} else {
			groups = append(groups, g)
		}
		for _, one := range p.pods {
			spec.Gbatch.OfRanks = append(spec.Gbatch.OfRanks, k.rankOf(p, one, shared))
		}
	}
	if len(groups)-1 > maxOtherParts {
		d.Problem(parts[0].at.Up, fmt.Sprintf("has %d parts that ask for different amounts or run different commands one after the other, at most %d are supported", len(groups), maxOtherParts+1), "divide it into several jobs")
		groups = groups[:1]
	}
	spec.Request.Docker.Environment = ofAll(shared, spec.Gbatch.OfRanks)
	spec.Gbatch.OtherGroups = ownCommands(groups)
	if spec.Gbatch.Nodes = groups[0].Nodes; pods < 2 {
		spec.Gbatch.Nodes = 0
	} else {
		where := "each on a node of its own"
		if k.mayShare(parts) {
			spec.Gbatch.RanksPerNode, where = pods, "and may share nodes"
			d.Becomes("gbatch.ranksPerNode", parts[0].at)
		}
		d.Note(k.jobSpec, fmt.Sprintf("has pods that find each other: they are %d ranks, which start together, %s; one that fails ends the others", pods, where))
	}
	d.Becomes("gbatch.nodes", parts[0].at)
	d.Becomes("gbatch.otherGroups", parts[0].at)
	d.Becomes("gbatch.ofRanks", parts[0].at)
	k.serve(d, parts)
	k.spec = *spec
}

// exclusiveTopology keeps jobs of a set on nodes of their own, where it names them by hostname.
const exclusiveTopology = "alpha.jobset.sigs.k8s.io/exclusive-topology"

// mayShare says whether pods may be on one node, as far as the file says and ranks can: in a
// node's network they would take each other's ports.
func (k *manifest) mayShare(parts []*part) bool {
	apart := func(m *manifest) bool {
		g := m.spec.Gbatch
		gpus := m.spec.Request.Resources.GPUs
		return m.singly || g.Network == job.NetworkHost || g.Exclusive || g.Privileged || gpus != math.Trunc(gpus) || g.Labels[exclusiveTopology] == byHost
	}
	return !apart(k) && !slices.ContainsFunc(parts, func(p *part) bool { return apart(p.k) })
}

// maxOtherParts is how many groups a native job has beside the first.
const maxOtherParts = 15

// rankOf is what the rank of one pod has of its own.
func (k *manifest) rankOf(p *part, one pod, shared map[string]string) job.Own {
	o := job.Own{Hosts: names.Of(one.host, one.domain, k.namespace), Environment: map[string]string{}}
	if one.domain != "" { // by the service's name alone pods find all of them
		o.Hosts = append(o.Hosts, names.Of(one.domain, "", k.namespace)...)
	}
	for name, value := range p.k.spec.Request.Docker.Environment {
		if _, all := shared[name]; !all {
			for label := range p.k.askedLabels { // variables of a rank do not know each other
				value = strings.ReplaceAll(value, "$("+names.LabelVariable(label)+")", one.labels[label])
			}
			o.Environment[name] = value
		}
	}
	for name, value := range one.variables {
		o.Environment[name] = value
	}
	for label := range p.k.askedLabels {
		o.Environment[names.LabelVariable(label)] = one.labels[label]
	}
	return o
}

// commonVariables are those that all parts have with one value.
func commonVariables(parts []*part) map[string]string {
	var shared map[string]string
	for name, value := range parts[0].k.spec.Request.Docker.Environment {
		all := !slices.ContainsFunc(parts, func(p *part) bool {
			other, has := p.k.spec.Request.Docker.Environment[name]
			return !has || other != value
		})
		if all {
			foreign.Set(&shared, name, value)
		}
	}
	return shared
}

// ofAll moves variables that all ranks have with one value into those of the job. Labels and
// indexes stay, as other variables of the job may name them.
func ofAll(shared map[string]string, ranks []job.Own) map[string]string {
	for _, name := range slices.Sorted(maps.Keys(ranks[0].Environment)) {
		value := ranks[0].Environment[name]
		differs := func(o job.Own) bool { v, has := o.Environment[name]; return !has || v != value }
		if strings.HasPrefix(name, names.LabelPrefix) || foreign.IsTaskVariable(name) || slices.ContainsFunc(ranks, differs) {
			continue
		}
		foreign.Set(&shared, name, value)
		for i := range ranks {
			delete(ranks[i].Environment, name)
		}
	}
	return shared
}

// groupOf is what a part's ranks ask for and run.
func groupOf(p *part) job.Group {
	r := p.k.spec.Request
	return job.Group{Nodes: len(p.pods), GPUs: r.Resources.GPUs, CPUs: r.Resources.CPUs, CPUMemoryGB: r.Resources.CPUMemoryGB,
		GPUModel: r.Resources.GPUModel, GPUMemoryGB: r.Resources.GPUMemoryGB, Command: &r.Docker.Command, Entrypoint: p.k.spec.Gbatch.Entrypoint}
}

func sameGroup(a, b job.Group) bool {
	b.Nodes = a.Nodes
	return reflect.DeepEqual(a, b)
}

// ownCommands are the groups behind the first, with commands where those are others.
func ownCommands(groups []job.Group) []job.Group {
	for i := range groups[1:] {
		g := &groups[i+1]
		if reflect.DeepEqual(g.Command, groups[0].Command) && slices.Equal(g.Entrypoint, groups[0].Entrypoint) {
			g.Command, g.Entrypoint = nil, nil
		}
	}
	return groups[1:]
}

// alike tells of what differs between two parts and is the same for all ranks of a job.
func (k *manifest) alike(d *decoder, a, b *part) {
	of := func(p *part) job.Spec {
		s := p.k.spec
		g := *s.Gbatch
		s.Name, s.Request.Resources.GPUs, s.Request.Resources.CPUs, s.Request.Resources.CPUMemoryGB, s.Request.Resources.GPUModel, s.Request.Resources.GPUMemoryGB = "", 0, 0, 0, nil, 0
		s.Request.Docker.Command, s.Request.Docker.Environment = job.Command{}, nil
		g.Labels, g.Entrypoint, g.Nodes, g.OfRanks, g.OtherGroups, g.Retry = nil, nil, 0, nil, nil, nil
		s.Gbatch = &g
		return s
	}
	if path := foreign.Difference(of(a), of(b)); path != "" {
		d.Problem(b.at, fmt.Sprintf("differs from %s in what becomes %s: ranks of a job may differ in their command, variables, cores, memory and GPUs only", d.Path(a.at), path),
			"have it the same in both, or submit them as jobs of their own")
	}
	if !reflect.DeepEqual(rulesOf(a), rulesOf(b)) {
		d.Problem(b.at, "has another podFailurePolicy than "+d.Path(a.at)+", and a job has one", "give both the same")
	}
}

func rulesOf(p *part) []job.RetryRule {
	if r := p.k.spec.Gbatch.Retry; r != nil {
		return r.Rules
	}
	return nil
}

// indexedPods are those of a Job with completionMode Indexed: their hosts are called by the
// name and their index.
func indexedPods(name, domain string, completions int) (list []pod) {
	for i := range completions {
		index := strconv.Itoa(i)
		list = append(list, pod{host: name + "-" + index, domain: domain, labels: map[string]string{indexLabel: index},
			variables: map[string]string{"JOB_COMPLETION_INDEX": index, "JOB_COMPLETIONS": strconv.Itoa(completions)}})
	}
	return list
}

// gang makes ranks of a Job's own pods.
func (k *manifest) gang(d *decoder, n *node, completions int) {
	domain := ""
	if k.subdomain != nil {
		domain = k.subdomain.Text
	}
	p := &part{k: k, at: n, pods: indexedPods(k.jobName(), domain, completions)}
	if !k.indexed { // one pod, whose host has no name of its own
		p.pods[0].variables = nil
	}
	k.ranks(d, []*part{p})
	if k.enoughIndexes == "0" && k.enoughCount <= 1 && completions > 1 {
		k.spec.Gbatch.StopWhen = job.MasterDone
	} else if (k.enoughIndexes != "" || k.enoughCount > 0) && completions > 1 {
		d.Problem(n.Child("successPolicy"), "is about some of pods that find each other, and these are ranks of one gang", "write succeededIndexes: \"0\", whose end then ends the others, or remove it")
	}
}

// namedIn is the namespace that texts of the file give a host's name of a domain; empty: none.
func namedIn(found *node, domain string) string {
	namespace := ""
	eachText(found, func(_ *node, text, _ string) { namespace = cmp.Or(namespace, names.Namespace(text, domain)) })
	return namespace
}

// eachText goes through the texts by which containers are told where others are: their
// commands, and the values of their variables.
func eachText(n *node, look func(n *node, text, variable string)) {
	switch {
	case n.Key == "command" || n.Key == "args":
		for _, kid := range n.Kids {
			look(kid, kid.Text, "")
		}
	case n.Key == "env":
		for _, kid := range n.Kids {
			if name, value := kid.Given("name"), kid.Given("value"); name != nil && value != nil {
				look(value, value.Text, name.Text)
			}
		}
	default:
		for _, kid := range n.Kids {
			eachText(kid, look)
		}
	}
}
