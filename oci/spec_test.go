package oci_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/cgroups"
	"gbatch/oci"
	"gbatch/oci/overlay"
	"gbatch/oci/userns"
	"gbatch/oci/users"
)

var rewrite = flag.Bool("rewrite", false, "write golden files anew")

// Whole specs: with nothing, with everything, and of a user of the host.
func TestBuildSpecGolden(t *testing.T) {
	cases := map[string]oci.SpecRequest{
		"least": {Image: oci.ImageConfig{Cmd: []string{"sh"}}, CgroupPath: "/gbatch/n/1.0"},
		"most": {
			Image:   oci.ImageConfig{Env: []string{"PATH=/opt/bin", "A=1"}, Entrypoint: []string{"/init"}, Cmd: []string{"x"}, WorkDir: "/srv", User: "www"},
			Command: []string{"train", "--fast"}, Env: []string{"A=2", "B=3"}, WorkDir: "/project", User: "bob:users", Groups: []string{"video", "44"},
			Hostname: "rank0", ReadOnlyRoot: true, Network: oci.Network{Host: true}, Seccomp: oci.SeccompCompat,
			Mounts:   []oci.Mount{{Source: "/data/p/sub", Target: "/project/sub"}, {Source: "/data/p", Target: "/project/"}, {Source: "/run/hosts", Target: "/etc/hosts", ReadOnly: true}},
			Tmpfs:    []oci.Tmpfs{{Target: "/scratch", Bytes: 1 << 30}},
			ShmBytes: 1 << 30, CgroupPath: "/gbatch/n/2.1",
			Limits:  cgroups.Limits{CPUs: cgroups.NewCPUSet(0, 1, 2, 3, 8), Mems: []int{0, 1}, MemoryBytes: 8 << 30, Pids: 4096},
			Rlimits: []specs.POSIXRlimit{{Type: "RLIMIT_MEMLOCK", Soft: 1 << 40, Hard: 1 << 40}},
			Devices: []specs.LinuxDevice{{Path: "/dev/fuse", Type: "c", Major: 10, Minor: 229}},

			Capabilities: []string{"CAP_SYS_CHROOT"}, AppArmor: "gbatch-job",
		},
	}
	mapped := cases["least"]
	mapped.IDs = userns.MapOf(alice)
	cases["mapped"] = mapped
	for name, req := range cases {
		t.Run(name, func(t *testing.T) {
			spec, err := oci.BuildSpec(req)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.MarshalIndent(spec, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", "spec-"+name+".json")
			if *rewrite {
				if err := os.WriteFile(file, append(got, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}

// Privileged containers are not confined.
func TestBuildSpecPrivileged(t *testing.T) {
	spec, err := oci.BuildSpec(oci.SpecRequest{Command: []string{"a"}, CgroupPath: "/g/x", Privileged: true, AppArmor: "gbatch-job"})
	if err != nil || spec.Process.ApparmorProfile != "" || spec.Process.NoNewPrivileges {
		t.Errorf("%+v, %v", spec, err)
	}
}

// Which command runs, by docker's rules.
func TestBuildSpecCommand(t *testing.T) {
	image := oci.ImageConfig{Entrypoint: []string{"/entry"}, Cmd: []string{"default"}}
	cases := map[string]struct {
		req  oci.SpecRequest
		want []string
	}{
		"image":              {oci.SpecRequest{Image: image}, []string{"/entry", "default"}},
		"command":            {oci.SpecRequest{Image: image, Command: []string{"a", "b"}}, []string{"/entry", "a", "b"}},
		"entrypoint":         {oci.SpecRequest{Image: image, Entrypoint: []string{"/mine"}}, []string{"/mine"}},
		"both":               {oci.SpecRequest{Image: image, Entrypoint: []string{"/mine"}, Command: []string{"a"}}, []string{"/mine", "a"}},
		"noentrypoint":       {oci.SpecRequest{Image: oci.ImageConfig{Cmd: []string{"c"}}, Command: []string{"a"}}, []string{"a"}},
		"empty_argument":     {oci.SpecRequest{Command: []string{"a", ""}}, []string{"a", ""}},
		"not_split_by_space": {oci.SpecRequest{Command: []string{"a b"}}, []string{"a b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.req.CgroupPath = "/g/x"
			spec, err := oci.BuildSpec(tc.req)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, spec.Process.Args); diff != "" {
				t.Errorf("args (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBuildSpecRefuses(t *testing.T) {
	cases := map[string]struct {
		edit func(*oci.SpecRequest)
		want string
	}{
		"nothing":   {func(r *oci.SpecRequest) { r.Command = nil }, "nothing to run"},
		"nul":       {func(r *oci.SpecRequest) { r.Command = []string{"a\x00b"} }, "NUL"},
		"env":       {func(r *oci.SpecRequest) { r.Env = []string{"NOVALUE"} }, `environment entry "NOVALUE" is not NAME=value`},
		"root":      {func(r *oci.SpecRequest) { r.Mounts = []oci.Mount{{Source: "/a", Target: "/"}} }, "would hide the image"},
		"proc":      {func(r *oci.SpecRequest) { r.Mounts = []oci.Mount{{Source: "/a", Target: "/x/../proc/sys"}} }, "belongs to the runtime"},
		"dev":       {func(r *oci.SpecRequest) { r.Mounts = []oci.Mount{{Source: "/a", Target: "/dev"}} }, "/dev belongs to the runtime"},
		"relative":  {func(r *oci.SpecRequest) { r.Mounts = []oci.Mount{{Source: "a", Target: "b"}} }, `mount source "a" must be absolute`},
		"twice":     {func(r *oci.SpecRequest) { r.Tmpfs = []oci.Tmpfs{{"/t", 1}, {"/t/", 2}} }, "two mounts on /t"},
		"tmpfssize": {func(r *oci.SpecRequest) { r.Tmpfs = []oci.Tmpfs{{Target: "/t"}} }, "needs a size"},
		"cgroup":    {func(r *oci.SpecRequest) { r.CgroupPath = "/a/../b" }, "cgroup path"},
		"cgroot":    {func(r *oci.SpecRequest) { r.CgroupPath = "/" }, "cgroup path"},
		"network":   {func(r *oci.SpecRequest) { r.Network = oci.Network{Host: true, Path: "/n"} }, "both the host's and a namespace"},
		"workdir":   {func(r *oci.SpecRequest) { r.WorkDir = "rel" }, `working directory "rel" must be absolute`},
		"memory":    {func(r *oci.SpecRequest) { r.Limits.MemoryBytes = 1 }, "below the"},
		"hostname":  {func(r *oci.SpecRequest) { r.Hostname = strings.Repeat("h", 64) }, "longer than 63"},
		"group":     {func(r *oci.SpecRequest) { r.Groups = []string{"a,b"} }, `group "a,b"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := oci.SpecRequest{Command: []string{"true"}, CgroupPath: "/g/x"}
			tc.edit(&req)
			_, err := oci.BuildSpec(req)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestApplyUser(t *testing.T) {
	spec, err := oci.BuildSpec(oci.SpecRequest{Command: []string{"id"}, CgroupPath: "/g/x", User: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	users.Apply(spec, users.User{UID: 7, GID: 8, Groups: []uint32{9}, Home: "/h"})
	p := spec.Process
	if !p.NoNewPrivileges || p.Capabilities.Effective != nil || p.Capabilities.Permitted != nil || len(p.Capabilities.Bounding) == 0 {
		t.Errorf("privileges: %v %+v", p.NoNewPrivileges, p.Capabilities)
	}
	if p.User.UID != 7 || p.User.GID != 8 || p.User.Username != "" || p.Env[len(p.Env)-1] != "HOME=/h" {
		t.Errorf("user %+v, env %v", p.User, p.Env)
	}
}

func TestPrepareRefuses(t *testing.T) {
	spec, err := oci.BuildSpec(oci.SpecRequest{Command: []string{"id"}, CgroupPath: "/g/x"})
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
		"spec":   {&specs.Spec{}, oci.ShimConfig{ID: "a", Layers: []string{"/l"}}, "build it with BuildSpec"},
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
	spec, err := oci.BuildSpec(oci.SpecRequest{Command: []string{"true"}, Network: oci.Network{Host: true}, CgroupPath: "/x"})
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
