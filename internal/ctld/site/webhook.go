package site

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Webhook is a service that the site tells of what becomes of jobs. The site's
// administrator names its address, so it may be anywhere.
type Webhook struct {
	Name       string   `yaml:"name"`
	URL        string   `yaml:"url"`
	Format     string   `yaml:"format"`     // json, slack; empty: json
	SecretFile string   `yaml:"secretFile"` // its content signs each message; empty: none is signed
	On         []string `yaml:"on"`         // of webhookEvents; empty: end
	Projects   []string `yaml:"projects"`   // empty: all
	Users      []string `yaml:"users"`      // empty: all
}

// webhookEvents are what a service can be told of.
var webhookEvents = []string{"queue", "run", "end", "halt", "restart"}

// Wants says whether a service is told of an event of a job.
func (w *Webhook) Wants(event, project, user string) bool {
	if len(w.On) == 0 && event != "end" || len(w.On) > 0 && !slices.Contains(w.On, event) {
		return false
	}
	return (len(w.Projects) == 0 || slices.Contains(w.Projects, project)) && (len(w.Users) == 0 || slices.Contains(w.Users, user))
}

func checkWebhooks(list []Webhook, bad func(path, format string, a ...any)) {
	seen := map[string]bool{}
	for i, w := range list {
		at := fmt.Sprintf("webhooks[%d].", i)
		u, err := url.Parse(w.URL)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
			bad(at+"url", "want https://HOST/PATH") // not shown: it may be a secret by itself
		}
		if w.Name == "" || seen[w.Name] {
			bad(at+"name", "%q: each webhook needs a name of its own, for the log", w.Name)
		}
		seen[w.Name] = true
		if !slices.Contains([]string{"", "json", "slack"}, w.Format) {
			bad(at+"format", "%q: want json or slack", w.Format)
		}
		for _, e := range w.On {
			if !slices.Contains(webhookEvents, e) {
				bad(at+"on", "%q: want %s", e, strings.Join(webhookEvents, ", "))
			}
		}
	}
}
