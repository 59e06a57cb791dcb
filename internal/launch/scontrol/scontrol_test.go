package scontrol

import (
	"strings"
	"testing"
)

// TestOffline: only names of nodes are had without the controller, not nodes that have such names.
func TestOffline(t *testing.T) {
	for args, want := range map[string]bool{
		"show hostnames":           true,
		"-o show HostNames n[1-2]": true,
		"show hostlist n1,n2":      true,
		"show node host1":          false,
		"update NodeName=host1":    false,
		"show job 7":               false,
		"requeue 7":                false,
		"show":                     false,
		"release host":             false,
	} {
		if got := offline(strings.Fields(args)); got != want {
			t.Errorf("%s: %v, want %v", args, got, want)
		}
	}
}
