package cgroups

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Topology is a machine's processors and memory, as the kernel shows them.
type Topology struct {
	CPUs  []CPU  `json:"cpus"`  // online ones, ascending by ID
	Nodes []Node `json:"nodes"` // NUMA nodes, ascending by ID; never empty
}

// CPU is one logical processor, a hardware thread.
type CPU struct {
	ID     int `json:"id"`
	Core   int `json:"core"` // its physical core: the lowest CPU number on it
	Node   int `json:"node"` // its NUMA node
	Socket int `json:"socket"`
}

// Node is a NUMA node. It may have processors without memory or the reverse.
type Node struct {
	ID          int    `json:"id"`
	CPUs        CPUSet `json:"cpus"` // online ones
	MemoryBytes int64  `json:"memory_bytes"`
}

// ReadTopology reads a sysfs tree: os.DirFS("/sys") on a live machine. A
// kernel without NUMA shows as one node 0 with all processors. CPUs that are
// offline are left out.
func ReadTopology(fsys fs.FS) (Topology, error) {
	t, err := readTopology(fsys)
	if err != nil {
		return Topology{}, fmt.Errorf("read cpu topology: %w", err)
	}
	return t, nil
}

func readTopology(fsys fs.FS) (Topology, error) {
	online, err := readList(fsys, "devices/system/cpu/online")
	if err != nil {
		return Topology{}, err
	}
	if online.IsEmpty() {
		return Topology{}, errors.New("devices/system/cpu/online has no cpu")
	}
	nodes, err := readNodes(fsys, online)
	if err != nil {
		return Topology{}, err
	}
	t := Topology{Nodes: nodes}
	for _, id := range online.List() {
		cpu, err := readCPU(fsys, id, online)
		if err != nil {
			return Topology{}, err
		}
		cpu.Node = nodeOf(nodes, id)
		t.CPUs = append(t.CPUs, cpu)
	}
	return t, nil
}

// readCPU reads one processor. Its siblings come from a list of threads, as
// core ids repeat from socket to socket.
func readCPU(fsys fs.FS, id int, online CPUSet) (CPU, error) {
	dir := path.Join("devices/system/cpu", "cpu"+strconv.Itoa(id), "topology")
	siblings, err := readList(fsys, path.Join(dir, "thread_siblings_list"))
	if errors.Is(err, fs.ErrNotExist) {
		siblings, err = readList(fsys, path.Join(dir, "core_cpus_list"))
	}
	if err != nil {
		return CPU{}, err
	}
	siblings = siblings.Intersect(online)
	if !siblings.Has(id) {
		return CPU{}, fmt.Errorf("cpu %d is not among its own siblings %q", id, siblings)
	}
	socket, err := readInt(fsys, path.Join(dir, "physical_package_id"))
	if err != nil {
		return CPU{}, err
	}
	return CPU{ID: id, Core: siblings.List()[0], Socket: int(max(socket, 0))}, nil
}

func readNodes(fsys fs.FS, online CPUSet) ([]Node, error) {
	entries, err := fs.ReadDir(fsys, "devices/system/node")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var nodes []Node
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), "node")
		id, err := strconv.Atoi(digits)
		if !ok || err != nil || id < 0 {
			continue
		}
		n, err := readNode(fsys, id, online)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	if len(nodes) == 0 {
		return []Node{{CPUs: online}}, nil
	}
	slices.SortFunc(nodes, func(a, b Node) int { return cmp.Compare(a.ID, b.ID) })
	return nodes, checkNodes(nodes, online)
}

func readNode(fsys fs.FS, id int, online CPUSet) (Node, error) {
	dir := path.Join("devices/system/node", "node"+strconv.Itoa(id))
	cpus, err := readList(fsys, path.Join(dir, "cpulist"))
	if err != nil {
		return Node{}, err
	}
	mem, err := readMemTotal(fsys, path.Join(dir, "meminfo"))
	if err != nil {
		return Node{}, err
	}
	return Node{ID: id, CPUs: cpus.Intersect(online), MemoryBytes: mem}, nil
}

func checkNodes(nodes []Node, online CPUSet) error {
	var seen CPUSet
	for _, n := range nodes {
		if twice := seen.Intersect(n.CPUs); !twice.IsEmpty() {
			return fmt.Errorf("cpus %s are on two numa nodes", twice)
		}
		seen = seen.Union(n.CPUs)
	}
	if lost := online.Minus(seen); !lost.IsEmpty() {
		return fmt.Errorf("cpus %s are on no numa node", lost)
	}
	return nil
}

func nodeOf(nodes []Node, cpu int) int {
	for _, n := range nodes {
		if n.CPUs.Has(cpu) {
			return n.ID
		}
	}
	return 0
}

// readMemTotal finds "Node 0 MemTotal:  16284 kB".
func readMemTotal(fsys fs.FS, name string) (int64, error) {
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) == 5 && f[2] == "MemTotal:" && f[4] == "kB" {
			kb, err := strconv.ParseInt(f[3], 10, 53)
			if err != nil || kb < 0 {
				return 0, fmt.Errorf("%s: MemTotal %q is not a number", name, f[3])
			}
			return kb << 10, nil
		}
	}
	return 0, fmt.Errorf("%s has no MemTotal", name)
}

func readList(fsys fs.FS, name string) (CPUSet, error) {
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return CPUSet{}, err
	}
	set, err := ParseCPUSet(string(data))
	if err != nil {
		return CPUSet{}, fmt.Errorf("%s: %w", name, err)
	}
	return set, nil
}

func readInt(fsys fs.FS, name string) (int64, error) {
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}

// Online returns all processors.
func (t Topology) Online() CPUSet {
	var s CPUSet
	for _, c := range t.CPUs {
		s.set(c.ID)
	}
	return s
}
