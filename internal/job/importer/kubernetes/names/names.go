// Package names has the names by which a cluster of Kubernetes knows hosts, and finds them in
// texts. It is pure.
package names

import (
	"regexp"
	"strings"

	"gbatch/internal/document"
)

// cluster is what names of hosts end in.
const cluster = "svc.cluster.local"

// Of are all by which a cluster knows a host: the full name, and what its search list
// makes shorter.
func Of(host, domain, namespace string) (list []string) {
	full := host
	if domain != "" {
		full += "." + domain
	}
	list = []string{full + "." + namespace + "." + cluster, full + "." + namespace + ".svc", full + "." + namespace, full}
	if full != host {
		list = append(list, host)
	}
	return list
}

// IsHost says whether hosts can be called so.
func IsHost(s string) bool {
	return len(s) <= 63 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" && strings.Trim(s, "-") == s
}

// Namespace is the one that a text gives a host of a domain; empty: it names none.
func Namespace(text, domain string) string {
	_, rest, _ := strings.Cut(text, domain+".")
	name, rest, _ := strings.Cut(rest, ".")
	if !strings.HasPrefix(rest, "svc") || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return ""
	}
	return strings.Clone(name)
}

// Patterns find names of hosts in texts. They are compiled for a file with a job: each
// command begins with this package.
type Patterns struct {
	variable  *regexp.Regexp // names of variables whose value is a host
	after     *regexp.Regexp // what follows a service's name only where it is one: a port, or the cluster's domain
	inCluster *regexp.Regexp // a name that only a cluster knows
}

// NewPatterns compiles them.
func NewPatterns() *Patterns {
	return &Patterns{
		variable:  regexp.MustCompile(`(?i)host|addr|server|master|endpoint|peer|url`),
		after:     regexp.MustCompile(`^((\.[a-z0-9-]+)?\.svc\b|[: ] *[0-9]+\b)`),
		inCluster: regexp.MustCompile(`\b[a-z0-9-]+(\.[a-z0-9-]+)+\.svc(\.cluster\.local)?\b`),
	}
}

// Connects says whether a text of a container has a service's name as a host. Variable is
// the name of the variable whose value it is.
func (p *Patterns) Connects(text, variable, service string) bool {
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

// InCluster are the names of a text that only a cluster knows.
func (p *Patterns) InCluster(text string) []string { return p.inCluster.FindAllString(text, -1) }

// LabelPrefix begins the names of variables that tell a rank labels of its pod.
const LabelPrefix = "POD_LABEL_"

// LabelVariable tells a rank a label that only its pod has.
func LabelVariable(label string) string {
	return LabelPrefix + strings.Map(func(c rune) rune {
		if c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			return c
		}
		return '_'
	}, strings.ToUpper(label))
}
