package setup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInjection(t *testing.T) {
	cases := map[string]struct {
		cfg  Injection
		want string
	}{
		"zero":    {Injection{}, ""},
		"hook":    {Injection{Mode: Hook, Hook: "/usr/bin/hook"}, ""},
		"devices": {Injection{Devices: []string{"a.com/b=all"}}, ""},
		"mode":    {Injection{Mode: "runtime"}, `mode: "runtime": use cdi or hook`},
		"unused":  {Injection{Hook: "/usr/bin/hook"}, "hook: only used with mode hook"},
		"device":  {Injection{Devices: []string{"a.com/b"}}, `devices: "a.com/b": write a CDI device as example.com/rdma=all`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := tc.cfg.Validate(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseSimulation(t *testing.T) {
	cases := map[string]struct{ in, err string }{
		"empty":   {"", ""},
		"one":     {"h100:8", ""},
		"several": {"a100:2, b200:2", ""},
		"nocount": {"h100", `simulated GPUs "h100": write MODEL:N, as h100:8`},
		"model":   {"k80:2", `simulated GPUs "k80:2": unknown model, use one of a100, b200, h100, h200`},
		"zero":    {"h100:0", `simulated GPUs "h100:0": "0" is not a number of GPUs`},
		"word":    {"h100:x", `simulated GPUs "h100:x": "x" is not a number of GPUs`},
		"many":    {"h100:40,a100:25", `simulated GPUs "h100:40,a100:25": at most 64 in all`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := ParseSimulation(tc.in)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.err, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
