package preflight

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"gbatch/internal/noded/config"
)

// registryTimeout bounds the question to one registry.
const registryTimeout = 5 * time.Second

// checkRegistries asks the registries that the configuration names whether they
// are there. Others are known only by the jobs that use them. One that does not
// answer is a warning: images that are here need none.
func checkRegistries(ctx context.Context, c *config.Config) []finding {
	hosts := slices.Clone(c.Images.Insecure)
	for _, mirrors := range c.Images.Mirrors {
		hosts = append(hosts, mirrors...)
	}
	slices.Sort(hosts)
	var list []finding
	for _, host := range slices.Compact(hosts) {
		scheme := "https"
		if slices.Contains(c.Images.Insecure, host) {
			scheme = "http"
		}
		list = append(list, askRegistry(ctx, scheme, host)...)
	}
	return list
}

func askRegistry(ctx context.Context, scheme, host string) []finding {
	warn := func(what string) []finding {
		return []finding{{what: "registry " + host + " " + what, fix: "see that it runs and that no firewall or proxy is between: curl -i " + scheme + "://" + host + "/v2/"}}
	}
	ctx, cancel := context.WithTimeout(ctx, registryTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+host+"/v2/", nil)
	if err != nil {
		return warn("has a name that is no host and port")
	}
	client := http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil && strings.Contains(err.Error(), "certificate") {
		// Pulls may trust more than this: see images.certsDir.
		return fine("registry %s is there (its certificate is checked at the first pull)", host)
	}
	if err != nil {
		return warn("does not answer: " + err.Error())
	}
	resp.Body.Close()
	// One that wants a login says so here, and that is an answer too.
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusUnauthorized {
		return warn("is none: it answers " + resp.Status)
	}
	return fine("registry %s", host)
}
