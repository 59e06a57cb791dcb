package kubernetes

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
)

// hosts are patterns of names of hosts. They are compiled for a file with a job: each
// command begins with this package.
type hosts struct {
	variable  *regexp.Regexp // names of variables whose value is a host
	after     *regexp.Regexp // what follows a service's name only where it is one: a port, or the cluster's domain
	inCluster *regexp.Regexp // a name that only a cluster knows
}

func newHosts() *hosts {
	return &hosts{
		variable:  regexp.MustCompile(`(?i)host|addr|server|master|endpoint|peer|url`),
		after:     regexp.MustCompile(`^((\.[a-z0-9-]+)?\.svc\b|[: ] *[0-9]+\b)`),
		inCluster: regexp.MustCompile(`\b[a-z0-9-]+(\.[a-z0-9-]+)+\.svc(\.cluster\.local)?\b`),
	}
}

// connects says whether a text of a container has a service's name as a host. Variable is
// the name of the variable whose value it is.
func (p *hosts) connects(text, variable, service string) bool {
	if text == service {
		return p.variable.MatchString(variable)
	}
	for at := 0; ; {
		i := strings.Index(text[at:], service)
		if i < 0 {
			return false
		}
		before, after := text[:at+i], text[at+i+len(service):]
		at += i + len(service)
		inWord := before != "" && document.IsNameByte(before[len(before)-1]) || strings.HasSuffix(before, "-")
		if !inWord && (strings.HasSuffix(before, "://") || p.after.MatchString(after)) {
			return true
		}
	}
}

// maxServices bounds for how many a file's texts are looked through.
const maxServices = 50

// reaches tells of services of the file by which the job's containers look for others, and
// of other names that only a cluster knows.
func (k *manifest) reaches(d *decoder, found *node) {
	told, p := map[string]bool{}, newHosts()
	look := func(n *node, text, variable string) {
		for _, s := range k.services {
			name := s.Given("metadata").Given("name")
			if !told[name.Text] && !slices.Contains(k.served, name.Text) && p.connects(text, variable, name.Text) {
				told[name.Text] = true
				d.Problem(n, fmt.Sprintf("looks for the service %s, and jobs do not find each other by services", document.Quote(name.Text)), gangs)
			}
		}
		for _, name := range p.inCluster.FindAllString(text, -1) {
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
