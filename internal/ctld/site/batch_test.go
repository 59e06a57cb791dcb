package site

import (
	"strings"
	"testing"

	"gbatch/internal/job"
)

// TestNetworkOfScripts: the site's word is for scripts that say nothing, in
// projects that may use the nodes' network.
func TestNetworkOfScripts(t *testing.T) {
	ports := []job.PortMapping{{ContainerPort: 80}}
	for name, tc := range map[string]struct {
		site, script job.Network
		ports        []job.PortMapping
		project      string
		want         job.Network
	}{
		"nothing said":             {"", "", nil, "open", job.NetworkBridge},
		"the site's word":          {job.NetworkHost, "", nil, "open", job.NetworkHost},
		"not in all projects":      {job.NetworkHost, "", nil, "closed", job.NetworkBridge},
		"not in unknown ones":      {job.NetworkHost, "", nil, "other", job.NetworkBridge},
		"not with ports":           {job.NetworkHost, "", ports, "open", job.NetworkBridge},
		"the script's word":        {job.NetworkHost, job.NetworkBridge, nil, "open", job.NetworkBridge},
		"the script's word, wider": {"", job.NetworkHost, nil, "closed", job.NetworkHost}, // refused later, with the reason
	} {
		t.Run(name, func(t *testing.T) {
			c := Config{Batch: Batch{Network: tc.site}, Projects: []Project{{Name: "open", HostNetwork: true}, {Name: "closed"}}}
			spec := &job.Spec{Gbatch: &job.Gbatch{Network: tc.script, Launch: &job.Launch{}}}
			spec.Request.Docker.PortMappings = tc.ports
			if _, err := c.ResolveBatch(spec, "ann", tc.project); err != nil {
				t.Fatal(err)
			}
			if got := spec.Network(); got != tc.want {
				t.Errorf("the script has %q, want %q", got, tc.want)
			}
		})
	}
	var said []string
	Batch{Network: "hots"}.check(func(path, _ string, _ ...any) { said = append(said, path) })
	if strings.Join(said, " ") != "batch.network" {
		t.Errorf("a word that is none: %q", said)
	}
}
