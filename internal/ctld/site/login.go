package site

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"time"

	"gbatch/internal/reach"
)

// Login is the identity provider whose users get tokens by logging in there.
type Login struct {
	Issuer      string   `yaml:"issuer"`      // https://…, as its tokens name it
	ClientID    string   `yaml:"clientId"`    // of a public client with the device flow
	UserClaim   string   `yaml:"userClaim"`   // that holds the user's name here
	Domain      string   `yaml:"domain"`      // cut off after the name, which has to have it: ann@DOMAIN is ann; empty: names have none
	GroupsClaim string   `yaml:"groupsClaim"` // that lists the user's groups there
	Groups      []string `yaml:"groups"`      // of which a user has to be in one; empty: everybody there
	Scopes      []string `yaml:"scopes"`      // that are asked for, openid among them; empty: those that the claims need
	Pages       []string `yaml:"pages"`       // addresses of the web page that are redirect URIs of the client there; none: the page logs in by tokens alone
	Hosts       []string `yaml:"hosts"`       // that the provider may name for itself though they are inside the site: HOST, HOST:PORT, or a network
	TokenLife   Seconds  `yaml:"tokenLife"`   // after which the commands ask there again
}

const (
	minLoginLife = Seconds(5 * 60)
	maxLoginLife = Seconds(24 * 3600)
)

// setDefaults completes what is not said.
func (l *Login) setDefaults() {
	if l.UserClaim == "" {
		l.UserClaim = "preferred_username"
	}
	if l.GroupsClaim == "" {
		l.GroupsClaim = "groups"
	}
	if l.TokenLife == 0 {
		l.TokenLife = 8 * 3600
	}
}

func (l *Login) check(bad func(path, format string, a ...any)) {
	if l == nil {
		return
	}
	l.setDefaults()
	u, err := url.Parse(l.Issuer)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		bad("login.issuer", "%q: want https://HOST[/PATH], as the provider's tokens name it", l.Issuer)
	case u.Scheme == "http" && !loopback(u.Hostname()):
		bad("login.issuer", "%q: keys that came without TLS prove nothing: want https", l.Issuer)
	}
	if l.ClientID == "" {
		bad("login.clientId", "is missing: register a public client with the device flow at the provider")
	}
	if len(l.Scopes) > 0 && !slices.Contains(l.Scopes, "openid") {
		bad("login.scopes", "openid is missing: without it the provider says nothing of who logs in")
	}
	for _, page := range l.Pages {
		if p, err := url.Parse(page); err != nil || p.Scheme != "https" || p.Host == "" || p.User != nil || p.Path != "/web/" || p.RawQuery != "" || p.Fragment != "" {
			bad("login.pages", "%q: want https://HOST[:PORT]/web/, as browsers open the page and as the provider has it", page)
		}
	}
	for i, h := range l.Hosts {
		if wrong := reach.CheckHost(h); wrong != "" {
			bad(fmt.Sprintf("login.hosts[%d]", i), "%q: %s", h, wrong)
		}
	}
	if l.TokenLife < minLoginLife || l.TokenLife > maxLoginLife {
		bad("login.tokenLife", "%v: must be 5 minutes to 24 hours", time.Duration(l.TokenLife)*time.Second)
	}
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
