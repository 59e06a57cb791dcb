package oci_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// hookKinds are all moments at which programs of a site's CDI files run, and whose
// they are then: beside the container root's, within it its user's.
var hookKinds = map[string]struct {
	of   func(*specs.Hooks) *[]specs.Hook
	uid  string // on the host
	seen bool   // of the job's environment, by a hook that names none of its own
}{
	"prestart":        {func(h *specs.Hooks) *[]specs.Hook { return &h.Prestart }, "0", false}, //nolint:staticcheck // NVIDIA's is one
	"createRuntime":   {func(h *specs.Hooks) *[]specs.Hook { return &h.CreateRuntime }, "0", false},
	"createContainer": {func(h *specs.Hooks) *[]specs.Hook { return &h.CreateContainer }, "1003", false},
	"startContainer":  {func(h *specs.Hooks) *[]specs.Hook { return &h.StartContainer }, "1003", true},
	"poststart":       {func(h *specs.Hooks) *[]specs.Hook { return &h.Poststart }, "0", false},
	"poststop":        {func(h *specs.Hooks) *[]specs.Hook { return &h.Poststop }, "0", false},
}

// TestHooksOfHostileJob: a hook that runs as root beside a container, or before the
// container has its own root, has nothing of the job's environment; one that runs
// as its user in it, and is a program of its image, has. Each runs with no more than
// its place gives it.
func TestHooksOfHostileJob(t *testing.T) {
	out := share(t, os.ModeSticky|0o777, 0, 0)
	// By names that a hook might run without a path, and by what is loaded into it.
	evil := []string{"LD_PRELOAD=/evil.so", "LD_LIBRARY_PATH=/evil", "PATH=/evil:/bin", "BASH_ENV=/evil.sh", "ENV=/evil.sh", "NVIDIA_VISIBLE_DEVICES=all", "GODEBUG=evil=1", "TMPDIR=/evil"}
	b := newMapped(t, "sleep 0.1")
	b.req.Env = evil
	b.edit = func(spec *specs.Spec) {
		spec.Hooks = &specs.Hooks{}
		for kind, k := range hookKinds {
			to := filepath.Join(out, kind)
			if k.uid != "0" { // whoever is no root of the host may not pass through the test's directories
				to = map[bool]string{false: "/run/gbatch/stage/rootfs/s/", true: "/s/"}[k.seen] + kind
			}
			list := k.of(spec.Hooks)
			*list = append(*list, specs.Hook{Path: busybox, Args: []string{"sh", "-c",
				fmt.Sprintf("cat >/dev/null; { echo env; /bin/busybox env; echo self; grep -E '^(Uid|CapEff|NoNewPrivs)' /proc/self/status; cat /proc/self/uid_map; } >%s.new 2>&1; mv %s.new %s", to, to, to)}})
		}
		spec.Mounts = append(spec.Mounts, specs.Mount{Destination: "/s", Type: "bind", Source: out, Options: []string{"rbind", "rw"}})
	}
	if exit, log := b.run(); exit.Code != 0 {
		t.Fatalf("%+v %s\n%s", exit, log, b.shimLog())
	}
	for kind, k := range hookKinds {
		said, err := os.ReadFile(filepath.Join(out, kind))
		if err != nil {
			t.Errorf("%s did not run: %v", kind, err)
			continue
		}
		environ, self, _ := strings.Cut(string(said), "self\n")
		for _, kv := range evil {
			if has := strings.Contains(environ, kv+"\n"); has != k.seen {
				t.Errorf("%s sees %s of its job: %t\n%s", kind, kv, has, said)
			}
		}
		if got := strings.Split(owned(t, filepath.Join(out, kind)), ":")[0]; got != k.uid {
			t.Errorf("%s runs as %s of the host, want %s\n%s", kind, got, k.uid, self)
		}
		if root := strings.Contains(self, "4294967295"); root != (k.uid == "0") {
			t.Errorf("%s is root of the node: %t\n%s", kind, root, self)
		}
		if k.seen && !strings.Contains(self, "NoNewPrivs:\t1") {
			t.Errorf("%s may gain rights in the container\n%s", kind, self)
		}
	}
}
