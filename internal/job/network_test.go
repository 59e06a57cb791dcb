package job

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNetwork(t *testing.T) {
	ports := []PortMapping{{ContainerPort: 80}}
	for name, tc := range map[string]struct {
		ports []PortMapping
		g     *Gbatch
		want  Network
	}{
		"nothing_said": {nil, nil, NetworkBridge},
		"empty":        {nil, &Gbatch{Exclusive: true}, NetworkBridge},
		"ports":        {ports, nil, NetworkBridge},
		"ports_too":    {ports, &Gbatch{Nodes: 1}, NetworkBridge},
		"asked":        {nil, &Gbatch{Network: NetworkHost}, NetworkHost},
		"asked_bridge": {nil, &Gbatch{Network: NetworkBridge}, NetworkBridge},
		"gang":         {nil, &Gbatch{Nodes: 2}, NetworkBridge},
		"gang_asked":   {nil, &Gbatch{Nodes: 2, Network: NetworkHost}, NetworkHost},
	} {
		t.Run(name, func(t *testing.T) {
			s := Spec{Request: Request{Docker: Docker{PortMappings: tc.ports}}, Gbatch: tc.g}
			if got := s.Network(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestPortsInEnvironment(t *testing.T) {
	env := Environment(EnvInput{Spec: &Spec{}, Ports: []PortMapping{{ContainerPort: 8888, HostPort: 20001}, {ContainerPort: 22, HostPort: 2222}}})
	var got []string
	for _, v := range env {
		if len(v) > 12 && v[:12] == "GBATCH_PORT_" {
			got = append(got, v)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"GBATCH_PORT_22=2222", "GBATCH_PORT_8888=20001"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
