package site

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestJobsDomain: what jobs serve is never below, or at, a name of the page's own.
func TestJobsDomain(t *testing.T) {
	for domain, want := range map[string]string{
		"":                                  "",
		"jobs.example.org":                  "",
		"jobs.localhost":                    "",
		"Jobs.Example.org":                  "",
		"example.org":                       "the page itself is at head.example.org",
		"head.example.org":                  "the page itself is at head.example.org",
		"jobs":                              "want a domain",
		"*.jobs.example.org":                "want a domain",
		"jobs.example.org:443":              "want a domain",
		"192.0.2.1":                         "want a domain",
		"https://jobs.example.org":          "want a domain",
		strings.Repeat("long.", 40) + "org": "want a domain",
	} {
		c := Default()
		c.Advertise, c.Web.JobsDomain = "head.example.org:7077", domain
		got := ""
		if err := c.Validate(); err != nil {
			got = err.Error()
		}
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", domain, got, want)
		}
	}
}

// TestServerNames: the certificate has the names by which browsers come.
func TestServerNames(t *testing.T) {
	c := Default()
	c.Listen, c.Advertise, c.Web.JobsDomain = "192.0.2.1:7077", "head.example.org:7077,bad name:1", "Jobs.example.org"
	if diff := cmp.Diff([]string{"*.jobs.example.org", "192.0.2.1", "head.example.org", "localhost"}, c.ServerNames()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPageAddress: of several controllers, each names its own page.
func TestPageAddress(t *testing.T) {
	all := "c1.example.org:7077,c2.example.org:7077,c3.example.org:7078"
	for name, tc := range map[string]struct {
		advertise, listen string
		replica           *Replica
		want              string
	}{
		"one":         {"head.example.org:7077", "0.0.0.0:7077", nil, "https://head.example.org:7077"},
		"by_listen":   {"192.0.2.1:7077,192.0.2.2:7077", "192.0.2.2:7077", nil, "https://192.0.2.2:7077"},
		"by_its_port": {"192.0.2.1:1,192.0.2.1:2", "192.0.2.1:2", nil, "https://192.0.2.1:2"},
		"by_replica":  {all, "0.0.0.0:7077", &Replica{Listen: "0.0.0.0:7079", Advertise: "c2.example.org:7079"}, "https://c2.example.org:7077"},
		"other_port":  {all, "0.0.0.0:7077", &Replica{Listen: "c3.example.org:7079"}, "https://c3.example.org:7078"},
		"unknown":     {all, "0.0.0.0:7077", &Replica{Listen: "192.0.2.3:7079"}, "https://c1.example.org:7077"},
	} {
		c := Default()
		c.Advertise, c.Listen, c.Replica = tc.advertise, tc.listen, tc.replica
		if got := PageAddress(c, c.Listen); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
