package job

import "testing"

func TestRequireRuntime(t *testing.T) {
	for name, tc := range map[string]struct {
		g     *Gbatch
		field string
	}{
		"nothing":      {nil, ""},
		"same":         {&Gbatch{Runtime: "gvisor"}, ""},
		"another":      {&Gbatch{Runtime: "runc"}, "runtime"},
		"privileged":   {&Gbatch{Privileged: true}, "privileged"},
		"capabilities": {&Gbatch{Capabilities: []Capability{"NET_RAW"}}, "capabilities"},
		"network":      {&Gbatch{Network: NetworkHost}, "network"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Spec{Gbatch: tc.g}
			field, why := s.RequireRuntime("gvisor")
			if field != tc.field || (field == "") != (why == "") || field == "" && s.Runtime() != "gvisor" {
				t.Errorf("%q, %q; runtime %q", field, why, s.Runtime())
			}
		})
	}
}
