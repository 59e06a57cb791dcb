package cgroups

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseMountinfo(t *testing.T) {
	v1 := "30 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n31 25 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
		"32 25 0:28 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n40 25 0:27 /x /elsewhere/memory rw - cgroup cgroup rw,memory\n"
	v2 := "29 25 0:25 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	cases := map[string]struct {
		in   string
		want Host
		err  string
	}{
		"v2": {in: "20 1 8:1 / / rw - ext4 /dev/sda rw\n" + v2, want: Host{Mode: V2, Mounts: map[string]string{"": "/sys/fs/cgroup"}}},
		"v1": {in: v1, want: Host{Mode: V1, Mounts: map[string]string{
			"cpu": "/sys/fs/cgroup/cpu,cpuacct", "cpuacct": "/sys/fs/cgroup/cpu,cpuacct", "memory": "/sys/fs/cgroup/memory", "name=systemd": "/sys/fs/cgroup/systemd"}}},
		"hybrid": {in: "31 25 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n33 25 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			want: Host{Mode: Hybrid, Mounts: map[string]string{"memory": "/sys/fs/cgroup/memory", "": "/sys/fs/cgroup/unified"}}},
		"none":    {in: "20 1 8:1 / / rw - ext4 /dev/sda rw\n", err: "no cgroup file system is mounted"},
		"garbage": {in: "x\n - \n1 2 3 4 5 - cgroup2\n", err: "no cgroup file system is mounted"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseMountinfo(strings.NewReader(tc.in))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("error %v, want %q", err, tc.err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("%v, host (-want +got):\n%s", err, diff)
			}
		})
	}
}

// A made-up v2 hierarchy: what files are read, and which are not there on
// older kernels.
func TestStatsV2(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "g")
	put(t, dir, map[string]string{
		"cpu.stat":       "usage_usec 1500\nuser_usec 1000\n",
		"memory.current": "4096\n", "memory.events": "low 0\nmax 7\noom 3\noom_kill 2\n", "pids.current": "5\n", "pids.events": "max 8\n",
	})
	h := Host{Mode: V2, Mounts: map[string]string{"": root}}
	g, err := h.Find("/g")
	if err != nil {
		t.Fatal(err)
	}
	got, err := g.Stats()
	want := Stats{CPUNanos: 1500000, MemoryBytes: 4096, OOMKills: 2, Pids: 5, PidsDenied: 8}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, stats (-want +got):\n%s", err, diff)
	}
	put(t, dir, map[string]string{"memory.peak": "many\n"})
	if _, err := g.Stats(); err == nil || !strings.Contains(err.Error(), "memory.peak") {
		t.Errorf("bad number: %v", err)
	}
	gone, _ := h.Find("/none")
	if _, err := gone.Stats(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no group: %v", err)
	}
}

// On a hybrid host the v2 hierarchy has the group too, but counts nothing.
func TestStatsHybrid(t *testing.T) {
	memory, unified := t.TempDir(), t.TempDir()
	put(t, filepath.Join(memory, "g"), map[string]string{"memory.oom_control": "oom_kill_disable 0\noom_kill 4\n", "memory.max_usage_in_bytes": "9\n"})
	put(t, filepath.Join(unified, "g"), map[string]string{"memory.events": "oom_kill 0\n"})
	h := Host{Mode: Hybrid, Mounts: map[string]string{"memory": memory, "": unified}}
	g, err := h.Find("/g")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := g.Stats(); err != nil || got.OOMKills != 4 || got.PeakBytes != 9 {
		t.Errorf("%+v, %v", got, err)
	}
}

func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSettleIn(t *testing.T) {
	cases := map[string]struct {
		self, want, procs, err string
	}{
		"unit":    {self: "0::/system.slice/gnoded.service\n", want: "/system.slice/gnoded.service", procs: "/system.slice/gnoded.service/daemon"},
		"again":   {self: "0::/system.slice/gnoded.service/daemon\n", want: "/system.slice/gnoded.service"},
		"root":    {self: "0::/\n", want: "/"},
		"v1lines": {self: "5:memory:/x\n", err: "no v2 line"},
		"denied":  {self: "0::/nowhere\n", err: "Delegate=yes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			put(t, filepath.Join(root, "system.slice/gnoded.service"), nil)
			got, err := baseIn(root, tc.self, "daemon")
			if tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) || tc.err == "" && err != nil {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			if got != tc.want {
				t.Errorf("base %q, want %q", got, tc.want)
			}
			if tc.procs != "" {
				data, err := os.ReadFile(filepath.Join(root, tc.procs, "cgroup.procs"))
				if err != nil || string(data) != fmt.Sprint(os.Getpid()) {
					t.Errorf("moved %q, %v", data, err)
				}
			}
		})
	}
}

func TestCheck(t *testing.T) {
	root := t.TempDir()
	put(t, root, map[string]string{"cgroup.controllers": "cpu memory pids\n"})
	cases := map[string]struct {
		host Host
		want []string
	}{
		"v2 without cpuset": {Host{Mode: V2, Mounts: map[string]string{"": root}}, []string{"cgroup controller cpuset is not available in /"}},
		"v1 with little": {Host{Mode: V1, Mounts: map[string]string{"memory": root, "cpu": root, "cpuacct": root, "cpuset": root, "devices": root, "freezer": root}},
			[]string{"cgroup controller pids is not mounted", "the kernel does not count swap, so a job may swap beyond its memory limit"}},
	}
	for name, tc := range cases {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			var got []string
			for _, p := range tc.host.check("/") {
				got = append(got, p.What)
				if p.Fix == "" {
					t.Errorf("no fix for %q", p.What)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// needGroups skips where groups cannot be made.
func needGroups(t *testing.T) Host {
	t.Helper()
	h, err := Detect()
	if err != nil || os.Geteuid() != 0 {
		t.Skipf("SKIPPED, no cgroups without root and a cgroup file system: %v", err)
	}
	for _, p := range h.check("/") {
		if p.Fatal {
			t.Skipf("SKIPPED, %s", p.What)
		}
	}
	return h
}

// makeGroup makes a group in every hierarchy, with a process in each.
func makeGroup(t *testing.T, h Host, path string, withProcess bool) *exec.Cmd {
	t.Helper()
	var cmd *exec.Cmd
	if withProcess {
		cmd = exec.Command("sleep", "1000")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		reaped := make(chan error, 1)
		go func() { reaped <- cmd.Wait() }() // as a daemon does; the cleanup waits for it
		t.Cleanup(func() { cmd.Process.Kill(); <-reaped })
	}
	for _, point := range h.points() {
		dir := filepath.Join(point, path)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if h.Mode == V2 {
			delegate(t, point, path)
		}
		if strings.Contains(point, "cpuset") && h.Mode != V2 {
			continue // needs its own values first
		}
		if withProcess {
			if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(fmt.Sprint(cmd.Process.Pid)), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	return cmd
}

// delegate turns on what the test counts in every group above path, as the
// container runtime does.
func delegate(t *testing.T, root, path string) {
	t.Helper()
	dir := root
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+pids +memory"), 0); err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(dir, name)
	}
}

func TestSweepAndKill(t *testing.T) {
	h := needGroups(t)
	prefix := fmt.Sprintf("/gbatch-cgtest.%d", os.Getpid())
	t.Cleanup(func() {
		Sweep(prefix, func(string) bool { return false })
		(&Group{host: h, path: prefix}).Remove()
	})
	kept := makeGroup(t, h, prefix+"/a/kept", true)
	makeGroup(t, h, prefix+"/b/dead", true)
	makeGroup(t, h, prefix+"/a/empty", false)
	frozen, err := Find(prefix + "/b/dead")
	if err != nil {
		t.Fatal(err)
	}
	if err := frozen.Freeze(true); err != nil {
		t.Fatal(err)
	}
	removed, err := Sweep(prefix, func(path string) bool { return path == prefix+"/a/kept" })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{prefix + "/a/empty", prefix + "/b"}, removed); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	keptGroup, err := Find(prefix + "/a/kept")
	if err != nil {
		t.Fatal(err)
	}
	if pids, err := keptGroup.Pids(); err != nil || len(pids) != 1 || pids[0] != kept.Process.Pid {
		t.Errorf("kept processes %v, %v", pids, err)
	}
	if st, err := keptGroup.Stats(); err != nil || st.Pids != 1 {
		t.Errorf("%+v, %v", st, err)
	}
	if frozen.Exists() {
		t.Error("the dead group exists")
	}
	if err := keptGroup.Kill(10 * time.Second); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := keptGroup.Remove(); err != nil {
			t.Error(err)
		}
	}
}

func TestFindRefuses(t *testing.T) {
	for _, path := range []string{"", "/", "a", "/a/../b", "/a/"} {
		if _, err := (Host{}).Find(path); err == nil {
			t.Errorf("found %q", path)
		}
	}
}

// TestOnly: a group is looked at in the hierarchies that are asked for alone, and the
// figures that grow are read without the others.
func TestOnly(t *testing.T) {
	memory, pids := t.TempDir(), t.TempDir()
	put(t, filepath.Join(memory, "g"), map[string]string{"memory.oom_control": "oom_kill 4\n", "memory.max_usage_in_bytes": "9\n", "memory.usage_in_bytes": "none\n", "cgroup.procs": "7\n8\n"})
	put(t, filepath.Join(pids, "g"), map[string]string{"pids.events": "max 2\n", "pids.current": "3\n", "cgroup.procs": "7\n"})
	g, err := Host{Mode: V1, Mounts: map[string]string{"memory": memory, "pids": pids}}.Find("/g")
	if err != nil {
		t.Fatal(err)
	}
	got, err := g.Totals()
	if diff := cmp.Diff(Stats{PeakBytes: 9, OOMKills: 4, PidsDenied: 2}, got); diff != "" || err != nil {
		t.Errorf("%v, totals (-want +got):\n%s", err, diff)
	}
	got, err = g.Only("pids").Stats()
	if diff := cmp.Diff(Stats{Pids: 3, PidsDenied: 2}, got); diff != "" || err != nil {
		t.Errorf("%v, stats of one controller (-want +got):\n%s", err, diff)
	}
	for want, of := range map[int]*Group{2: g, 1: g.Only("pids"), 0: g.Only("freezer")} {
		if list, err := of.Pids(); err != nil || len(list) != want {
			t.Errorf("processes %v, %v, want %d", list, err, want)
		}
	}
	if _, err := g.Only("freezer").Totals(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a controller without the group: %v", err)
	}
}

// TestLongFile: a file is read to its end, however long it is.
func TestLongFile(t *testing.T) {
	root := t.TempDir()
	put(t, filepath.Join(root, "g"), map[string]string{"memory.stat": strings.Repeat("another 1\n", 5000) + "anon 5\nshmem 6\n"})
	g, err := Host{Mode: V2, Mounts: map[string]string{"": root}}.Find("/g")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := g.Stats(); err != nil || got.HeldBytes != 11 {
		t.Errorf("%+v, %v", got, err)
	}
}
