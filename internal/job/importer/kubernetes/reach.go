package kubernetes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/kubernetes/names"
)

// maxServices bounds for how many a file's texts are looked through.
const maxServices = 50

// reaches tells of services of the file by which the job's containers look for others, and
// of other names that only a cluster knows.
func (k *manifest) reaches(d *decoder, found *node) {
	told, p := map[string]bool{}, names.NewPatterns()
	look := func(n *node, text, variable string) {
		for _, s := range k.services {
			name := s.Given("metadata").Given("name")
			if !told[name.Text] && !slices.Contains(k.served, name.Text) && p.Connects(text, variable, name.Text) {
				told[name.Text] = true
				d.Problem(n, fmt.Sprintf("looks for the service %s, and jobs do not find each other by services", document.Quote(name.Text)), gangs)
			}
		}
		for _, name := range p.InCluster(text) {
			if at, _, _ := strings.Cut(name, "."); !told[name] && !told[at] && !k.knows(name) {
				told[name] = true
				d.Note(n, fmt.Sprintf("names %s, which only a cluster knows: the job reaches it by a name or address of the site's network", document.Quote(name)))
			}
		}
	}
	eachText(found, look)
	if spec := k.jobSpec; spec != nil {
		for _, name := range slices.Sorted(maps.Keys(k.beside.maps)) {
			of := k.beside.maps[name]
			for _, key := range of.names {
				look(spec, of.values[key], key)
			}
		}
	}
}

// knows says that a name is one of the job's ranks.
func (k *manifest) knows(name string) bool {
	return slices.ContainsFunc(k.spec.Gbatch.OfRanks, func(o job.Own) bool { return slices.Contains(o.Hosts, name) })
}
