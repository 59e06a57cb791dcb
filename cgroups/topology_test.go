package cgroups_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gbatch/cgroups"
)

// machine describes a sysfs tree: sockets with NUMA nodes with cores, whose
// second threads are numbered after all first ones, as the usual firmware does.
type machine struct {
	sockets, nodesPerSocket, coresPerNode, threads int
	memGiB                                         int // per node
}

func (m machine) cores() int { return m.sockets * m.nodesPerSocket * m.coresPerNode }

func (m machine) cpus() int { return m.cores() * m.threads }

func (m machine) sysfs() fstest.MapFS {
	tree := fstest.MapFS{}
	put := func(name, text string) { tree[name] = &fstest.MapFile{Data: []byte(text + "\n")} }
	put("devices/system/cpu/online", fmt.Sprintf("0-%d", m.cpus()-1))
	for cpu := range m.cpus() {
		core := cpu % m.cores()
		var siblings []string
		for t := range m.threads {
			siblings = append(siblings, fmt.Sprint(core+t*m.cores()))
		}
		dir := fmt.Sprintf("devices/system/cpu/cpu%d/topology/", cpu)
		put(dir+"thread_siblings_list", strings.Join(siblings, ","))
		put(dir+"physical_package_id", fmt.Sprint(core/(m.nodesPerSocket*m.coresPerNode)))
	}
	for node := range m.sockets * m.nodesPerSocket {
		var ranges []string
		for t := range m.threads {
			first := node*m.coresPerNode + t*m.cores()
			ranges = append(ranges, fmt.Sprintf("%d-%d", first, first+m.coresPerNode-1))
		}
		dir := fmt.Sprintf("devices/system/node/node%d/", node)
		put(dir+"cpulist", strings.Join(ranges, ","))
		put(dir+"meminfo", fmt.Sprintf("Node %d MemTotal:       %d kB\nNode %d MemFree: 1 kB", node, m.memGiB<<20, node))
	}
	return tree
}

var (
	laptop = machine{sockets: 1, nodesPerSocket: 1, coresPerNode: 4, threads: 2, memGiB: 16}
	dual   = machine{sockets: 2, nodesPerSocket: 1, coresPerNode: 8, threads: 1, memGiB: 64}
	nps4   = machine{sockets: 2, nodesPerSocket: 4, coresPerNode: 16, threads: 2, memGiB: 96}
	dgx    = machine{sockets: 2, nodesPerSocket: 1, coresPerNode: 56, threads: 2, memGiB: 1024}
)

func read(t testing.TB, tree fs.FS) cgroups.Topology {
	t.Helper()
	top, err := cgroups.ReadTopology(tree)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

func TestReadTopology(t *testing.T) {
	for name, m := range map[string]machine{"laptop": laptop, "dual": dual, "nps4": nps4, "dgx": dgx} {
		t.Run(name, func(t *testing.T) {
			top := read(t, m.sysfs())
			if len(top.CPUs) != m.cpus() || len(top.Nodes) != m.sockets*m.nodesPerSocket {
				t.Errorf("%d cpus, %d nodes", len(top.CPUs), len(top.Nodes))
			}
			last := top.CPUs[len(top.CPUs)-1]
			want := cgroups.CPU{ID: m.cpus() - 1, Core: m.cores() - 1, Node: len(top.Nodes) - 1, Socket: m.sockets - 1}
			if diff := cmp.Diff(want, last); diff != "" {
				t.Errorf("last cpu (-want +got):\n%s", diff)
			}
			for _, n := range top.Nodes {
				if want := int64(m.memGiB) << 30; n.MemoryBytes != want {
					t.Errorf("memory of node %d: %d, want %d", n.ID, n.MemoryBytes, want)
				}
			}
		})
	}
}

// Machines that are odd but usable, and trees that are not.
func TestReadTopologyOdd(t *testing.T) {
	node0 := "devices/system/node/node0/"
	cases := map[string]struct {
		spoil func(fstest.MapFS)
		want  string // what is read: cpus and nodes
		err   string
	}{
		"nonuma": {func(f fstest.MapFS) { remove(f, "devices/system/node/") }, "0-7 on 1", ""},
		"offline": {func(f fstest.MapFS) {
			set(f, "devices/system/cpu/online", "0-4,6")
			remove(f, "devices/system/cpu/cpu7/")
		}, "0-4,6 on 1", ""},
		"newnames":  {func(f fstest.MapFS) { renameSiblings(f) }, "0-7 on 1", ""},
		"nopackage": {func(f fstest.MapFS) { set(f, "devices/system/cpu/cpu0/topology/physical_package_id", "-1") }, "0-7 on 1", ""},
		"memnode": {func(f fstest.MapFS) {
			set(f, "devices/system/node/node1/cpulist", "")
			set(f, "devices/system/node/node1/meminfo", "Node 1 MemTotal: 4 kB")
		}, "0-7 on 2", ""},
		"nothing":    {func(f fstest.MapFS) { clear(f) }, "", "devices/system/cpu/online"},
		"noneonline": {func(f fstest.MapFS) { set(f, "devices/system/cpu/online", "") }, "", "has no cpu"},
		"badlist":    {func(f fstest.MapFS) { set(f, "devices/system/cpu/online", "0-x") }, "", `"x" is not a cpu number`},
		"nosiblings": {func(f fstest.MapFS) { remove(f, "devices/system/cpu/cpu3/") }, "", "cpu3/topology"},
		"selfless":   {func(f fstest.MapFS) { set(f, "devices/system/cpu/cpu3/topology/thread_siblings_list", "0") }, "", "not among its own siblings"},
		"nomemory":   {func(f fstest.MapFS) { set(f, node0+"meminfo", "nothing") }, "", "has no MemTotal"},
		"lostcpu":    {func(f fstest.MapFS) { set(f, node0+"cpulist", "0-5") }, "", "cpus 6-7 are on no numa node"},
		"twice": {func(f fstest.MapFS) {
			set(f, "devices/system/node/node1/cpulist", "2-3")
			set(f, "devices/system/node/node1/meminfo", "Node 1 MemTotal: 4 kB")
		}, "", "cpus 2-3 are on two numa nodes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tree := laptop.sysfs()
			tc.spoil(tree)
			top, err := cgroups.ReadTopology(tree)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("error %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%s on %d", top.Online(), len(top.Nodes)); got != tc.want {
				t.Errorf("read %s, want %s", got, tc.want)
			}
		})
	}
}

func set(f fstest.MapFS, name, text string) { f[name] = &fstest.MapFile{Data: []byte(text + "\n")} }

func remove(f fstest.MapFS, prefix string) {
	for name := range f {
		if strings.HasPrefix(name, prefix) {
			delete(f, name)
		}
	}
}

func renameSiblings(f fstest.MapFS) {
	for name, file := range f {
		if dir, base := path.Split(name); base == "thread_siblings_list" {
			delete(f, name)
			f[dir+"core_cpus_list"] = file
		}
	}
}

func TestReadTopologyHere(t *testing.T) {
	top := read(t, os.DirFS("/sys"))
	if top.Online().Len() < runtime.NumCPU() {
		t.Errorf("%d processors, the runtime sees %d", top.Online().Len(), runtime.NumCPU())
	}
}

func TestPick(t *testing.T) {
	set := func(list string) cgroups.CPUSet {
		s, err := cgroups.ParseCPUSet(list)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	cases := map[string]struct {
		machine machine
		req     cgroups.PickRequest
		want    string // processors @ memory nodes
	}{
		"whole_core":       {laptop, cgroups.PickRequest{N: 2}, "0,4 @ [0]"},
		"two_cores":        {laptop, cgroups.PickRequest{N: 4}, "0-1,4-5 @ [0]"},
		"odd":              {laptop, cgroups.PickRequest{N: 3}, "0-1,4 @ [0]"},
		"broken_first":     {laptop, cgroups.PickRequest{N: 1, Busy: set("0")}, "4 @ [0]"},
		"whole_not_broken": {laptop, cgroups.PickRequest{N: 2, Busy: set("0")}, "1,5 @ [0]"},
		"reserved":         {laptop, cgroups.PickRequest{N: 2, Reserved: set("0,4")}, "1,5 @ [0]"},
		"all":              {laptop, cgroups.PickRequest{N: 8}, "0-7 @ [0]"},
		"near":             {dual, cgroups.PickRequest{N: 4, NearNUMA: []int{1}}, "8-11 @ [1]"},
		"near_overflows":   {dual, cgroups.PickRequest{N: 10, NearNUMA: []int{1}}, "0-1,8-15 @ [0 1]"},
		"tight_fit":        {dual, cgroups.PickRequest{N: 4, Busy: set("8-11")}, "12-15 @ [1]"},
		"fewest_nodes":     {dual, cgroups.PickRequest{N: 5, Busy: set("8-11")}, "0-4 @ [0]"},
		"numa_quarter":     {nps4, cgroups.PickRequest{N: 32, NearNUMA: []int{3}}, "48-63,176-191 @ [3]"},
		"same_socket_next": {nps4, cgroups.PickRequest{N: 40, NearNUMA: []int{5}}, "64-67,80-95,192-195,208-223 @ [4 5]"},
		"two_gpus":         {nps4, cgroups.PickRequest{N: 64, NearNUMA: []int{1, 5}}, "16-31,80-95,144-159,208-223 @ [1 5]"},
		"dgx_gpu":          {dgx, cgroups.PickRequest{N: 28, NearNUMA: []int{1}, Busy: set("56-69,168-181")}, "70-83,182-195 @ [1]"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cpus, mems, err := read(t, tc.machine.sysfs()).Pick(tc.req)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%s @ %v", cpus, mems); got != tc.want {
				t.Errorf("picked %s, want %s", got, tc.want)
			}
		})
	}
}

func TestPickRefuses(t *testing.T) {
	top := read(t, laptop.sysfs())
	if _, _, err := top.Pick(cgroups.PickRequest{N: 8, Reserved: cgroups.NewCPUSet(0)}); !errors.Is(err, cgroups.ErrNoCPUs) || !strings.Contains(err.Error(), "7 of 8 are free") {
		t.Errorf("too many: %v", err)
	}
	if _, _, err := top.Pick(cgroups.PickRequest{}); err == nil {
		t.Error("none were picked without an error")
	}
}

// Whatever is busy: exactly N free processors, no more shared cores than
// needed, and never a far node while a near one has room.
func TestPickProperties(t *testing.T) {
	top := read(t, nps4.sysfs())
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) cgroups.CPUSet {
			return cgroups.NewCPUSet(rapid.SliceOfN(rapid.IntRange(0, nps4.cpus()-1), 0, 100).Draw(t, name)...)
		}
		req := cgroups.PickRequest{N: rapid.IntRange(1, nps4.cpus()).Draw(t, "n"), Busy: draw("busy"), Reserved: draw("reserved"), NearNUMA: rapid.SliceOfN(rapid.IntRange(0, 7), 0, 3).Draw(t, "near")}
		free := top.Online().Minus(req.Busy).Minus(req.Reserved)
		cpus, mems, err := top.Pick(req)
		if free.Len() < req.N {
			if !errors.Is(err, cgroups.ErrNoCPUs) {
				t.Fatalf("error %v", err)
			}
			return
		}
		if err != nil || cpus.Len() != req.N || !cpus.Minus(free).IsEmpty() || len(mems) == 0 {
			t.Fatalf("picked %s of %s, mems %v, %v", cpus, free, mems, err)
		}
		near := nearCPUs(top, req.NearNUMA).Intersect(free)
		if far := cpus.Minus(near); len(req.NearNUMA) > 0 && !far.IsEmpty() && !near.Minus(cpus).IsEmpty() {
			t.Fatalf("picked %s afar while %s is free nearby", far, near.Minus(cpus))
		}
		again, _, _ := top.Pick(req)
		if again.String() != cpus.String() {
			t.Fatalf("picked %s, then %s", cpus, again)
		}
	})
}

func nearCPUs(top cgroups.Topology, nodes []int) cgroups.CPUSet {
	var out cgroups.CPUSet
	for _, n := range top.Nodes {
		for _, id := range nodes {
			if n.ID == id {
				out = out.Union(n.CPUs)
			}
		}
	}
	return out
}

func BenchmarkPick(b *testing.B) {
	top := read(b, dgx.sysfs())
	for b.Loop() {
		if _, _, err := top.Pick(cgroups.PickRequest{N: 28, NearNUMA: []int{1}}); err != nil {
			b.Fatal(err)
		}
	}
}
