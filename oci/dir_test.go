package oci_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/oci"
	"gbatch/oci/draft"
	"gbatch/oci/overlay"
)

func TestPrepareRefuses(t *testing.T) {
	spec, err := draft.Build(draft.Request{Command: []string{"id"}, CgroupPath: "/g/x"})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		spec *specs.Spec
		cfg  oci.ShimConfig
		want string
	}{
		"id":     {spec, oci.ShimConfig{ID: "a/b", Layers: []string{"/l"}}, "container id"},
		"layers": {spec, oci.ShimConfig{ID: "a"}, "no layers"},
		"many":   {spec, oci.ShimConfig{ID: "a", Layers: make([]string, overlay.MaxLayers+1)}, "at most 400"},
		"spec":   {&specs.Spec{}, oci.ShimConfig{ID: "a", Layers: []string{"/l"}}, "build it with draft.Build"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "c")
			err := oci.Prepare(dir, tc.spec, tc.cfg)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if _, err := os.Stat(dir); err == nil {
				t.Error("the directory was made")
			}
		})
	}
}

// TestPrepareIsAtomic: what a kill in the middle left is no container and does
// not keep the next one from being made; a finished one is never made again.
func TestPrepareIsAtomic(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "box")
	if err := os.MkdirAll(filepath.Join(dir+".new", "rootfs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir+".new", "shim.json"), []byte(`{"id":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if state, _, err := oci.Adopt(dir); err != nil || state != oci.StateNone {
		t.Fatalf("half a directory: state %s, error %v", state, err)
	}
	spec, err := draft.Build(draft.Request{Command: []string{"true"}, Network: draft.Network{Host: true}, CgroupPath: "/x"})
	if err != nil {
		t.Fatal(err)
	}
	cfg := oci.ShimConfig{ID: "x", Layers: []string{"/layer"}}
	if err := oci.Prepare(dir, spec, cfg); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir + ".new"); !os.IsNotExist(err) {
		t.Errorf("the unfinished directory is still there: %v", err)
	}
	if err := oci.Prepare(dir, spec, cfg); err == nil {
		t.Error("a directory was made twice")
	}
}
