package importer

import (
	"fmt"
	"math"
	"strings"

	"gbatch/internal/job"
)

// Amounts that are asked for where a file has none, or only "or more".
const (
	dstackCPUs   = 2
	dstackMemory = 8 // GiB
)

// dstackResources is resources while it is read.
type dstackResources struct {
	cpu, memory, disk *span
	shm               float64 // GiB; 0: none
	gpu               *gpuSpec
	total             *span // memory of all GPUs together, GiB
	capability        float64
}

var dstackResourceFields = []field[dstackResources]{
	{"cpu", func(d *decoder, n *node, r *dstackResources) { r.cpu = d.cpu(n) }, false},
	{"memory", func(d *decoder, n *node, r *dstackResources) { r.memory = d.span(n, parseMemory) }, false},
	{"shm_size", func(d *decoder, n *node, r *dstackResources) {
		if s := d.span(n, parseMemory); s != nil && !s.exact() {
			d.problem(n, "must be one size, not a range", "")
		} else if s != nil {
			r.shm = s.low
		}
	}, false},
	{"gpu", func(d *decoder, n *node, r *dstackResources) { r.readGPU(d, n) }, false},
	{"disk", func(d *decoder, n *node, r *dstackResources) {
		if n.kind != objectKind {
			r.disk = d.span(n, parseMemory)
			return
		}
		object(d, n, dstackDiskFields, r)
	}, false},
}

var dstackDiskFields = []field[dstackResources]{
	{"size", func(d *decoder, n *node, r *dstackResources) { r.disk = d.span(n, parseMemory) }, true},
}

// span reads an amount, a range, or an object with min and max; nil after a
// problem.
func (d *decoder) span(n *node, one func(string) (float64, error)) *span {
	var s span
	var err error
	if n.kind == objectKind {
		before := len(d.found)
		object(d, n, spanFields(one), &s)
		if len(d.found) > before {
			return nil
		}
		if err = s.check(); !s.hasLow && !s.hasHigh {
			d.problem(n, "is an empty range", `give "min", "max" or both`)
			return nil
		}
	} else {
		if n.kind != stringKind && n.kind != numberKind {
			d.wrongKind(n, "an amount or a range such as 2..8")
			return nil
		}
		s, err = parseSpan(n.text, one)
	}
	if err != nil {
		d.problem(n, err.Error(), "")
		return nil
	}
	return &s
}

func spanFields(one func(string) (float64, error)) []field[span] {
	end := func(to func(*span, float64)) func(*decoder, *node, *span) {
		return func(d *decoder, n *node, s *span) {
			text, ok := d.scalar(n)
			if !ok {
				return
			}
			x, err := one(text)
			if err != nil {
				d.problem(n, err.Error(), "")
				return
			}
			to(s, x)
		}
	}
	return []field[span]{
		{"min", end(func(s *span, x float64) { s.low, s.hasLow = x, true }), false},
		{"max", end(func(s *span, x float64) { s.high, s.hasHigh = x, true }), false},
	}
}

// cpu reads a number of cores, with or without an architecture, as arm:8.. .
func (d *decoder) cpu(n *node) *span {
	if n.kind != stringKind || !strings.ContainsFunc(n.text, func(c rune) bool { return c < 0x80 && isLetter(byte(c)) }) {
		return d.span(n, parseCount)
	}
	count := &span{low: dstackCPUs, hasLow: true}
	for part := range strings.SplitSeq(strings.ReplaceAll(n.text, " ", ""), ":") {
		switch strings.ToLower(part) {
		case "x86":
		case "arm":
			d.problem(n, "asks for ARM processors, which no node has", "remove \"arm\", and use an image for x86")
			return nil
		default:
			s, err := parseSpan(part, parseCount)
			if err != nil {
				d.problem(n, err.Error(), "")
				return nil
			}
			count = &s
		}
	}
	return count
}

// readGPU reads a number, the short form, or an object.
func (r *dstackResources) readGPU(d *decoder, n *node) {
	if n.kind == objectKind {
		r.gpu = &gpuSpec{}
		object(d, n, dstackGPUFields, r)
		return
	}
	if n.kind != stringKind && n.kind != numberKind {
		d.wrongKind(n, "a number, a text such as A100:80GB:2, or an object")
		return
	}
	g, err := parseGPU(n.text)
	if err != nil {
		d.problem(n, fmt.Sprintf("is %s, which %v", quote(n.text), err), "write VENDOR:NAME,NAME:MEMORY:COUNT with what is needed of it, as A100:80GB:2, 24GB.. or 2")
		return
	}
	r.gpu = &g
	checkGPUVendor(d, n, g.vendor)
}

var dstackGPUFields = []field[dstackResources]{
	{"vendor", func(d *decoder, n *node, r *dstackResources) {
		s, ok := d.str(n)
		if !ok {
			return
		}
		if r.gpu.vendor = gpuVendors[strings.ToLower(s)]; r.gpu.vendor == "" {
			d.problem(n, fmt.Sprintf("is %s, which is no vendor: nvidia, amd, google, intel or tenstorrent", quote(s)), "")
			return
		}
		checkGPUVendor(d, n, r.gpu.vendor)
	}, false},
	{"name", func(d *decoder, n *node, r *dstackResources) { r.gpu.names = d.strs(n) }, false},
	{"count", func(d *decoder, n *node, r *dstackResources) { r.gpu.count = d.span(n, parseCount) }, false},
	{"memory", func(d *decoder, n *node, r *dstackResources) { r.gpu.memory = d.span(n, parseMemory) }, false},
	{"total_memory", func(d *decoder, n *node, r *dstackResources) { r.total = d.span(n, parseMemory) }, false},
	{"compute_capability", func(d *decoder, n *node, r *dstackResources) { r.capability = d.capability(n) }, false},
}

func checkGPUVendor(d *decoder, n *node, vendor string) {
	if vendor != "" && vendor != "nvidia" {
		d.problem(n, fmt.Sprintf("asks for accelerators of %s, and nodes have GPUs of NVIDIA only", vendor), "name GPUs of NVIDIA, or none")
	}
}

// capability reads 7.5, "7.5" or [7, 5].
func (d *decoder) capability(n *node) float64 {
	text := n.text
	if n.kind == arrayKind && len(n.kids) == 2 {
		text = n.kids[0].text + "." + n.kids[1].text
	} else if n.kind != numberKind && n.kind != stringKind {
		d.wrongKind(n, "a compute capability such as 7.5")
		return 0
	}
	var major, minor int
	if _, err := fmt.Sscanf(text+"|", "%d.%d|", &major, &minor); err != nil || major < 1 || major > 99 || minor < 0 || minor > 9 {
		d.problem(n, fmt.Sprintf("is %s, which is no compute capability", quote(text)), "write major.minor, such as 7.5 or 9.0")
		return 0
	}
	return float64(major*10+minor) / 10
}

// apply turns ranges into the amounts that are asked for: what a job gets here
// is exact, so it is the least that the file allows.
func (r *dstackResources) apply(d *decoder, n *node, spec *job.Spec) {
	g, to := spec.Gbatch, &spec.Request.Resources
	at := func(key string) *node {
		if n != nil && n.child(key) != nil {
			return n.child(key)
		}
		return n
	}
	cpus, memory := float64(dstackCPUs), float64(dstackMemory)
	if r.cpu != nil {
		cpus = max(1, r.cpu.least(1))
		d.rounded(at("cpu"), r.cpu, amount(int(cpus), "core"))
	}
	if r.memory != nil {
		memory = r.memory.least(dstackMemory)
		d.rounded(at("memory"), r.memory, fmt.Sprintf("%d GB", max(1, roundUp(memory))))
	}
	if more := r.roomForShm(memory); more > memory {
		memory = more
		d.note(at("shm_size"), fmt.Sprintf("is a part of the memory, of which %d GB are asked for", roundUp(memory)))
	}
	if n != nil && r.cpu == nil {
		d.note(n, "names no cpu: asked for is "+amount(dstackCPUs, "core"))
	}
	if n != nil && r.memory == nil && r.shm == 0 {
		d.note(n, fmt.Sprintf("names no memory: asked for is %d GB", dstackMemory))
	}
	to.CPUs, to.CPUMemoryGB = int(cpus), max(1, roundUp(memory))
	g.ShmSizeMB = int(math.Ceil(r.shm * 1024))
	if r.disk != nil {
		g.DiskGB = max(1, roundUp(r.disk.least(1)))
		d.rounded(at("disk"), r.disk, fmt.Sprintf("%d GB", g.DiskGB))
	}
	if n != nil {
		d.becomes("request.resources.cpus", at("cpu"))
		d.becomes("request.resources.cpuMemoryGb", at("memory"))
		d.becomes("gbatch.shmSizeMb", at("shm_size"))
		d.becomes("gbatch.diskGb", at("disk"))
	}
	if r.gpu != nil {
		r.applyGPU(d, at("gpu"), spec)
	}
}

// rounded tells what a range became.
func (d *decoder) rounded(n *node, s *span, what string) {
	if !s.exact() {
		d.note(n, "is a range, and amounts are exact here: asked for is "+what)
	}
}

// amount is a number of things for people.
func amount(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// roomForShm is the memory to ask for if shared memory, which is a part of it
// here and comes on top of it in dstack, shall leave what was asked for.
func (r *dstackResources) roomForShm(memory float64) float64 {
	if r.shm == 0 || r.memory != nil && r.memory.exact() {
		return memory
	}
	if r.memory != nil && r.memory.hasHigh {
		return min(memory+r.shm, r.memory.high)
	}
	return memory + r.shm
}

func (r *dstackResources) applyGPU(d *decoder, n *node, spec *job.Spec) {
	g, to := r.gpu, &spec.Request.Resources
	place := func(key string) *node {
		if kid := n.child(key); kid != nil {
			return kid
		}
		return n
	}
	count := span{low: 1, high: 1, hasLow: true, hasHigh: true}
	if g.count != nil {
		count = *g.count
	}
	to.GPUs = count.least(1)
	d.rounded(place("count"), &count, amount(int(to.GPUs), "GPU"))
	d.becomes("request.resources.gpus", place("count"))
	if to.GPUs == 0 {
		return // what follows is about GPUs
	}
	if len(g.names) > 0 {
		to.GPUModel = g.names
		d.becomes("request.resources.gpuModel", place("name"))
		d.note(place("name"), "is read as any GPU whose model has "+strings.Join(g.names, " or ")+" in its name")
	}
	if r.capability > 0 {
		spec.Gbatch.MinComputeCapability = r.capability
		d.becomes("gbatch.minComputeCapability", place("compute_capability"))
	}
	least := 0.0
	from := place("memory")
	if g.memory != nil {
		least = g.memory.least(0)
		if g.memory.hasHigh && !g.memory.exact() {
			d.note(from, "has an upper end, which is not used: GPUs with more memory are taken too")
		}
	}
	if r.total != nil {
		if each := r.total.least(0) / to.GPUs; each > least {
			least, from = each, place("total_memory")
		}
		d.note(place("total_memory"), fmt.Sprintf("is read as memory of each of %d GPUs", int(to.GPUs)))
	}
	if least == 0 {
		return
	}
	to.GPUMemoryGB = max(1, int(least*nominalGPUMemory))
	d.becomes("request.resources.gpuMemoryGb", from)
	d.note(from, fmt.Sprintf("is read as at least %d GB, since GPUs have a little less than they are sold with", to.GPUMemoryGB))
}

// nominalGPUMemory is how much of the memory that a GPU is sold with it has at
// least for programs: an L40S of 48 GB has 44.99 GiB, a T4 of 16 GB 15 GiB.
const nominalGPUMemory = 0.93
