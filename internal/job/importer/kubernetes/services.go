package kubernetes

import (
	"fmt"
	"slices"

	"gbatch/internal/document"
	"gbatch/internal/job/importer/kubernetes/names"
)

// maxServed bounds the services whose names ranks have.
const maxServed = 5

// serve gives ranks the names of the file's services that select their pods. A service with
// an address of its own may have other ports than its pods, which ranks have not.
func (k *manifest) serve(d *decoder, parts []*part) {
	for _, s := range k.services {
		name, rank, chosen := s.Given("metadata").Given("name").Text, 0, []int{}
		for _, p := range parts {
			for _, one := range p.pods {
				if p.k.selects(s, one) {
					chosen = append(chosen, rank)
				}
				rank++
			}
		}
		if len(chosen) == 0 || len(k.served) == maxServed {
			continue
		}
		k.served = append(k.served, name)
		if port := otherPort(s); port != nil {
			d.Problem(port, fmt.Sprintf("of the service %s leads to another port of the pods, and ranks reach each other's own ports", document.Quote(name)), "have the service and the program use the same port")
		}
		own := parts[0].k.spec.Gbatch.OfRanks
		for _, rank := range chosen {
			for _, host := range names.Of(name, "", k.namespace) {
				if !slices.Contains(own[rank].Hosts, host) {
					own[rank].Hosts = append(own[rank].Hosts, host)
				}
			}
		}
	}
}

// selects says that a service is for a pod of the template.
func (k *manifest) selects(service *node, one pod) bool {
	spec := service.Given("spec")
	if spec == nil || spec.Given("selector") == nil || len(spec.Given("selector").Kids) == 0 {
		return false
	}
	for _, want := range spec.Given("selector").Kids {
		value, has := one.labels[want.Key]
		if !has {
			value, has = k.podLabel(want.Key)
		}
		if !has || value != want.Text {
			return false
		}
	}
	return true
}

// otherPort is a port of a service that is none of its pods'; nil: it has none. One without
// an address of its own has the pods'.
func otherPort(service *node) *node {
	spec := service.Given("spec")
	ports, ip := spec.Given("ports"), spec.Given("clusterIP")
	if ports == nil || ip != nil && ip.Text == "None" {
		return nil
	}
	for _, p := range ports.Kids {
		port, target := p.Given("port"), p.Given("targetPort")
		if port != nil && target != nil && target.Kind == document.NumberKind && port.Text != target.Text {
			return target
		}
	}
	return nil
}

// calls says that texts of the file look for a service that selects a pod of the job's.
func (k *manifest) calls(found *node, pods []pod) bool {
	calls, p := false, names.NewPatterns()
	for _, s := range k.services {
		if !slices.ContainsFunc(pods, func(one pod) bool { return k.selects(s, one) }) {
			continue
		}
		name := s.Given("metadata").Given("name").Text
		eachText(found, func(_ *node, text, variable string) { calls = calls || p.Connects(text, variable, name) })
	}
	return calls
}
