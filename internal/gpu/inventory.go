package gpu

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"gbatch/internal/node"
)

// inventory is what GPUs a node has, as plain values.
type inventory struct {
	Driver    string `json:"driver"` // as 550.54.15
	CUDA      int    `json:"cuda"`   // newest CUDA the driver runs, major*100 + minor: 1204 is 12.4
	GPUs      []GPU  `json:"gpus"`   // in order of Index
	Simulated bool   `json:"simulated,omitempty"`
}

// GPU is what jobs are given, a whole device or one MIG instance of it, with
// what only its own node needs to know to give it to a container. Index is its
// place in the order of PCI addresses, instances in that of their device; Model
// is as the driver says, an instance with its profile.
type GPU struct {
	node.GPU
	PCI   string `json:"pci"`           // 0000:1b:00.0
	Minor int    `json:"minor"`         // N of /dev/nvidiaN, -1 unknown
	MIG   *mig   `json:"mig,omitempty"` // nil: a whole device
}

// mig says which part of which device an instance is.
type mig struct {
	Parent   string `json:"parent"` // UUID of the device
	Instance int    `json:"instance"`
	Compute  int    `json:"compute"` // compute instance inside the GPU instance
}

// reader takes GPUs out of a library.
type reader struct {
	lib  nvml.Interface
	numa func(pci string) int
}

func newReader(lib nvml.Interface) *reader {
	r := &reader{lib: lib, numa: func(pci string) int { return sysfsNUMA(os.DirFS("/sys"), pci) }}
	if s, ok := lib.(*simulated); ok {
		r.numa = s.numa
	}
	return r
}

// device is one physical GPU and what it gives to jobs.
type device struct {
	handle nvml.Device // nil: there is none to be had
	number int         // NVML's
	uuid   string
	gpus   []GPU // itself, or its MIG instances
}

// discover reads the GPUs once. One that cannot be read is listed as unhealthy
// and hides no other; an error means that nothing could be read at all.
func (r *reader) discover() (inventory, []device, error) {
	var inv inventory
	count, ret := r.lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return inv, nil, fmt.Errorf("count GPUs: %v", ret)
	}
	driver, ret := r.lib.SystemGetDriverVersion()
	if ret != nvml.SUCCESS {
		return inv, nil, fmt.Errorf("read driver version: %v", ret)
	}
	cuda, ret := r.lib.SystemGetCudaDriverVersion()
	if ret != nvml.SUCCESS {
		return inv, nil, fmt.Errorf("read CUDA version of the driver: %v", ret)
	}
	inv.Driver, inv.CUDA = driver, cudaVersion(cuda)
	_, inv.Simulated = r.lib.(*simulated)

	devices := make([]device, 0, count)
	for i := range count {
		devices = append(devices, r.device(i))
	}
	slices.SortStableFunc(devices, func(a, b device) int { return cmp.Compare(a.gpus[0].PCI, b.gpus[0].PCI) })
	r.link(devices)
	for _, d := range devices {
		inv.GPUs = append(inv.GPUs, d.gpus...)
	}
	inv.number()
	return inv, devices, nil
}

// number gives indexes out in the order of the list.
func (inv *inventory) number() {
	for i := range inv.GPUs {
		inv.GPUs[i].Index = i
	}
}

// cudaVersion turns NVML's 12040 into 1204.
func cudaVersion(v int) int { return v/1000*100 + v%1000/10 }

// device reads NVML's i-th GPU. It always has at least one entry.
func (r *reader) device(i int) device {
	handle, ret := r.lib.DeviceGetHandleByIndex(i)
	if ret != nvml.SUCCESS {
		return unreadable(i, ret)
	}
	uuid, ret := handle.GetUUID()
	if ret != nvml.SUCCESS {
		return unreadable(i, ret)
	}
	d := device{handle: handle, number: i, uuid: uuid}
	g, bad := r.whole(handle, uuid)
	g.Unhealthy = bad
	if bad == "" && migOn(handle) {
		d.gpus = r.instances(handle, g)
		return d
	}
	d.gpus = []GPU{g}
	return d
}

// unreadable stands for a GPU of which NVML tells only that it is there. The
// driver knows no UUID for it, so it gets a name that no GPU has.
func unreadable(i int, ret nvml.Return) device {
	id := fmt.Sprintf("%s%d", standIn, i)
	return device{number: i, uuid: id, gpus: []GPU{{
		GPU: node.GPU{UUID: id, NUMA: -1, Unhealthy: faultText(ret)},
		PCI: fmt.Sprintf("unknown-%04d", i), Minor: -1, // after all addresses
	}}}
}

const standIn = "unreadable-"

func isStandIn(g GPU) bool { return strings.HasPrefix(g.UUID, standIn) }

// whole reads a device as one GPU, and says what could not be read.
func (r *reader) whole(handle nvml.Device, uuid string) (GPU, string) {
	g := GPU{GPU: node.GPU{UUID: uuid, NUMA: -1}, Minor: -1}
	var bad string
	check := func(what string, ret nvml.Return) bool {
		if ret != nvml.SUCCESS && bad == "" {
			bad = what + " cannot be read: " + faultText(ret)
		}
		return ret == nvml.SUCCESS
	}
	pci, ret := handle.GetPciInfo()
	if check("its PCI address", ret) {
		g.PCI = pciAddress(pci)
		g.NUMA = r.numa(g.PCI)
	}
	name, ret := handle.GetName()
	if check("its model", ret) {
		g.Model = name
	}
	mem, ret := handle.GetMemoryInfo()
	if check("its memory", ret) {
		g.MemBytes = int64(mem.Total)
	}
	minor, ret := handle.GetMinorNumber()
	if ret == nvml.SUCCESS { // integrated GPUs have none
		g.Minor = minor
	}
	major, minorCap, ret := handle.GetCudaComputeCapability()
	if check("its compute capability", ret) {
		g.ComputeCap = major*10 + minorCap
	}
	return g, bad
}

// pciAddress writes a PCI address as the kernel does; NVML writes four more
// digits of the domain, in upper case.
func pciAddress(info nvml.PciInfo) string {
	b := make([]byte, 0, len(info.BusId))
	for _, c := range info.BusId {
		if c == 0 {
			break
		}
		b = append(b, byte(c))
	}
	id := strings.ToLower(string(b))
	if domain, rest, ok := strings.Cut(id, ":"); ok && len(domain) == 8 {
		id = strings.TrimPrefix(domain, "0000") + ":" + rest
	}
	return id
}

// sysfsNUMA is the NUMA node of a PCI device, -1 where the machine has none.
func sysfsNUMA(sys fs.FS, pci string) int {
	b, err := fs.ReadFile(sys, path.Join("bus/pci/devices", pci, "numa_node"))
	if err != nil {
		return -1
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// link notes for each whole GPU which others it reaches by NVLink, directly or
// through switches: the driver is asked for each pair, as only it knows what a
// switch connects. MIG instances reach nobody.
func (r *reader) link(devices []device) {
	for i := range devices {
		for j := range devices[:i] {
			a, b := &devices[i], &devices[j]
			if !linkable(a) || !linkable(b) {
				continue
			}
			status, ret := a.handle.GetP2PStatus(b.handle, nvml.P2P_CAPS_INDEX_NVLINK)
			if ret != nvml.SUCCESS || status != nvml.P2P_STATUS_OK {
				continue
			}
			a.gpus[0].Links = append(a.gpus[0].Links, b.uuid)
			b.gpus[0].Links = append(b.gpus[0].Links, a.uuid)
		}
	}
	for _, d := range devices {
		slices.Sort(d.gpus[0].Links)
	}
}

func linkable(d *device) bool {
	return d.handle != nil && d.gpus[0].MIG == nil && d.gpus[0].Unhealthy == ""
}
