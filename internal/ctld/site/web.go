package site

import (
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Web is of the web page.
type Web struct {
	JobsDomain string `yaml:"jobsDomain"` // each port of a job that is opened has a host name of its own below it; empty: none is opened in browsers
}

// domainRule is a name of two parts or more, in letters that a host name has. With a label of a job's
// port (ports.place) before it, it is not too long.
var domainRule = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)

const maxDomain = 180

func (c Config) checkWeb(bad func(path, format string, a ...any)) {
	domain := strings.ToLower(c.Web.JobsDomain)
	if domain == "" {
		return
	}
	if len(domain) > maxDomain || !domainRule.MatchString(domain) {
		bad("web.jobsDomain", "%q: want a domain below which every name leads to this controller, as jobs.example.org", c.Web.JobsDomain)
		return
	}
	for _, host := range c.pageHosts() {
		if host = strings.ToLower(host); host == domain || strings.HasSuffix(host, "."+domain) {
			bad("web.jobsDomain", "%q: the page itself is at %s: what jobs serve would be of its site, and could set cookies for it. Use a domain that has nothing else", c.Web.JobsDomain, host)
		}
	}
}

// hostRule is what a certificate may have for a name.
var hostRule = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)

// ServerNames are the names and addresses by which browsers come to this controller, each
// once, and *. for those below web.jobsDomain.
func (c Config) ServerNames() (names []string) {
	for _, host := range append(c.pageHosts(), "localhost") {
		ip := net.ParseIP(host)
		if ip == nil && hostRule.MatchString(host) || ip != nil && !ip.IsUnspecified() {
			names = append(names, host)
		}
	}
	if c.Web.JobsDomain != "" {
		names = append(names, "*."+strings.ToLower(c.Web.JobsDomain))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// pageHosts are the names by which browsers open the page, as far as the configuration has them.
func (c Config) pageHosts() (hosts []string) {
	for _, address := range append(strings.Split(c.Advertise, ","), c.Listen, c.advertised(c.Listen)) {
		if host, _, err := net.SplitHostPort(address); err == nil {
			hosts = append(hosts, host)
		}
	}
	if c.Login != nil {
		for _, page := range c.Login.Pages {
			if u, err := url.Parse(page); err == nil {
				hosts = append(hosts, u.Hostname())
			}
		}
	}
	return hosts
}
