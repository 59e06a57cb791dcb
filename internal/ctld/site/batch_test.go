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

// TestMountsOfScripts: a script mounts directories by the names under which it sees them.
func TestMountsOfScripts(t *testing.T) {
	c := Config{Batch: Batch{Mounts: []BatchMount{{HostPath: "/home/{user}"}, {HostPath: "/shared", ContainerPath: "/work/{project}", ReadOnly: true}, {HostPath: "/fast", ContainerPath: "/work/{project}/fast"}, {HostPath: "/lab/{project}", ContainerPath: "/lab"}}}}
	for at, want := range map[string]string{
		"/home/ann/data": "/home/ann/data", "/work/vision": "/shared ro", "/work/vision/a/b": "/shared/a/b ro", "/work/vision/fast/x": "/fast/x", "/work/visions": "/work/visions",
		"/lab/x": "/lab/x", "/tape": "/tape", "tmpfs": "tmpfs",
	} {
		spec := &job.Spec{Gbatch: &job.Gbatch{Launch: &job.Launch{}}}
		spec.Request.Docker.Storage = []job.Storage{{HostPath: at, ContainerPath: "/data"}}
		given := spec.Request.Docker.Storage
		for range 2 { // as a document that is submitted once more
			if _, err := c.ResolveBatch(spec, "ann", "vision"); err != nil {
				t.Fatal(err)
			}
		}
		got := spec.Request.Docker.Storage[0].HostPath
		if spec.Request.Docker.Storage[0].ReadOnly {
			got += " ro"
		}
		if got != want || given[0].HostPath != at {
			t.Errorf("%s is %s, want %s", at, got, want)
		}
	}
}
