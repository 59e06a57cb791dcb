package draft_test

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
	"gbatch/oci/draft"
	"gbatch/oci/userns"
	"gbatch/oci/users"
)

var rewrite = flag.Bool("rewrite", false, "write golden files anew")

// Whole specs: with nothing, with everything, and of a user of the host.
func TestBuildGolden(t *testing.T) {
	cases := map[string]draft.Request{
		"least": {Image: draft.Image{Cmd: []string{"sh"}}, CgroupPath: "/gbatch/n/1.0"},
		"most": {
			Image:   draft.Image{Env: []string{"PATH=/opt/bin", "A=1"}, Entrypoint: []string{"/init"}, Cmd: []string{"x"}, WorkDir: "/srv", User: "www"},
			Command: []string{"train", "--fast"}, Env: []string{"A=2", "B=3"}, WorkDir: "/project", User: "bob:users", Groups: []string{"video", "44"},
			Hostname: "rank0", ReadOnlyRoot: true, Network: draft.Network{Host: true}, Seccomp: draft.SeccompCompat,
			Mounts:   []draft.Mount{{Source: "/data/p/sub", Target: "/project/sub"}, {Source: "/data/p", Target: "/project/"}, {Source: "/run/hosts", Target: "/etc/hosts", ReadOnly: true}},
			Tmpfs:    []draft.Tmpfs{{Target: "/scratch", Bytes: 1 << 30}},
			ShmBytes: 1 << 30, CgroupPath: "/gbatch/n/2.1",
			Limits:  cgroups.Limits{CPUs: cgroups.NewCPUSet(0, 1, 2, 3, 8), Mems: []int{0, 1}, MemoryBytes: 8 << 30, Pids: 4096},
			Rlimits: []specs.POSIXRlimit{{Type: "RLIMIT_MEMLOCK", Soft: 1 << 40, Hard: 1 << 40}},
			Devices: []specs.LinuxDevice{{Path: "/dev/fuse", Type: "c", Major: 10, Minor: 229}},

			Capabilities: []string{"CAP_SYS_CHROOT"}, AppArmor: "gbatch-job",
		},
	}
	mapped := cases["least"]
	mapped.IDs = userns.MapOf(userns.Owner{UID: 1003, GID: 1003, Groups: []uint32{2001}, First: 0x20000000})
	cases["mapped"] = mapped
	for name, req := range cases {
		t.Run(name, func(t *testing.T) {
			spec, err := draft.Build(req)
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
func TestBuildPrivileged(t *testing.T) {
	spec, err := draft.Build(draft.Request{Command: []string{"a"}, CgroupPath: "/g/x", Privileged: true, AppArmor: "gbatch-job"})
	if err != nil || spec.Process.ApparmorProfile != "" || spec.Process.NoNewPrivileges {
		t.Errorf("%+v, %v", spec, err)
	}
}

// Which command runs, by docker's rules.
func TestBuildCommand(t *testing.T) {
	image := draft.Image{Entrypoint: []string{"/entry"}, Cmd: []string{"default"}}
	cases := map[string]struct {
		req  draft.Request
		want []string
	}{
		"image":              {draft.Request{Image: image}, []string{"/entry", "default"}},
		"command":            {draft.Request{Image: image, Command: []string{"a", "b"}}, []string{"/entry", "a", "b"}},
		"entrypoint":         {draft.Request{Image: image, Entrypoint: []string{"/mine"}}, []string{"/mine"}},
		"both":               {draft.Request{Image: image, Entrypoint: []string{"/mine"}, Command: []string{"a"}}, []string{"/mine", "a"}},
		"noentrypoint":       {draft.Request{Image: draft.Image{Cmd: []string{"c"}}, Command: []string{"a"}}, []string{"a"}},
		"empty_argument":     {draft.Request{Command: []string{"a", ""}}, []string{"a", ""}},
		"not_split_by_space": {draft.Request{Command: []string{"a b"}}, []string{"a b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.req.CgroupPath = "/g/x"
			spec, err := draft.Build(tc.req)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, spec.Process.Args); diff != "" {
				t.Errorf("args (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBuildRefuses(t *testing.T) {
	cases := map[string]struct {
		edit func(*draft.Request)
		want string
	}{
		"nothing":   {func(r *draft.Request) { r.Command = nil }, "nothing to run"},
		"nul":       {func(r *draft.Request) { r.Command = []string{"a\x00b"} }, "NUL"},
		"env":       {func(r *draft.Request) { r.Env = []string{"NOVALUE"} }, `environment entry "NOVALUE" is not NAME=value`},
		"root":      {func(r *draft.Request) { r.Mounts = []draft.Mount{{Source: "/a", Target: "/"}} }, "would hide the image"},
		"proc":      {func(r *draft.Request) { r.Mounts = []draft.Mount{{Source: "/a", Target: "/x/../proc/sys"}} }, "belongs to the runtime"},
		"dev":       {func(r *draft.Request) { r.Mounts = []draft.Mount{{Source: "/a", Target: "/dev"}} }, "/dev belongs to the runtime"},
		"relative":  {func(r *draft.Request) { r.Mounts = []draft.Mount{{Source: "a", Target: "b"}} }, `mount source "a" must be absolute`},
		"twice":     {func(r *draft.Request) { r.Tmpfs = []draft.Tmpfs{{"/t", 1}, {"/t/", 2}} }, "two mounts on /t"},
		"tmpfssize": {func(r *draft.Request) { r.Tmpfs = []draft.Tmpfs{{Target: "/t"}} }, "needs a size"},
		"cgroup":    {func(r *draft.Request) { r.CgroupPath = "/a/../b" }, "cgroup path"},
		"cgroot":    {func(r *draft.Request) { r.CgroupPath = "/" }, "cgroup path"},
		"network":   {func(r *draft.Request) { r.Network = draft.Network{Host: true, Path: "/n"} }, "both the host's and a namespace"},
		"workdir":   {func(r *draft.Request) { r.WorkDir = "rel" }, `working directory "rel" must be absolute`},
		"memory":    {func(r *draft.Request) { r.Limits.MemoryBytes = 1 }, "below the"},
		"hostname":  {func(r *draft.Request) { r.Hostname = strings.Repeat("h", 64) }, "longer than 63"},
		"group":     {func(r *draft.Request) { r.Groups = []string{"a,b"} }, `group "a,b"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := draft.Request{Command: []string{"true"}, CgroupPath: "/g/x"}
			tc.edit(&req)
			_, err := draft.Build(req)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestApplyUser(t *testing.T) {
	spec, err := draft.Build(draft.Request{Command: []string{"id"}, CgroupPath: "/g/x", User: "bob"})
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
