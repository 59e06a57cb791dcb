package dstack

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/foreign"
)

// Amounts that are asked for where a file has none, or only "or more".
const (
	defaultCPUs   = 2
	defaultMemory = 8 // GiB
)

// resources is resources while it is read.
type resources struct {
	cpu, memory, disk *span
	shm               float64 // GiB; 0: none
	gpu               *gpuSpec
	total             *span // memory of all GPUs together, GiB
	capability        float64

	path string // of the native object that they become, of a group but the first
}

// at is the native field that one of the amounts becomes.
func (r *resources) at(field string) string {
	switch {
	case r.path != "":
		return r.path + "." + field
	case field == "minComputeCapability":
		return "gbatch." + field
	}
	return "request.resources." + field
}

var resourceFields = []field[resources]{
	{"cpu", func(d *decoder, n *node, r *resources) { r.cpu = readCPU(d, n) }, false},
	{"memory", func(d *decoder, n *node, r *resources) { r.memory = readSpan(d, n, parseMemory) }, false},
	{"shm_size", func(d *decoder, n *node, r *resources) {
		if s := readSpan(d, n, parseMemory); s != nil && !s.exact() {
			d.Problem(n, "must be one size, not a range", "")
		} else if s != nil {
			r.shm = s.low
		}
	}, false},
	{"gpu", func(d *decoder, n *node, r *resources) { r.readGPU(d, n) }, false},
	{"disk", func(d *decoder, n *node, r *resources) {
		if n.Kind != document.ObjectKind {
			r.disk = readSpan(d, n, parseMemory)
			return
		}
		document.Object(d, n, diskFields, r)
	}, false},
}

var diskFields = []field[resources]{
	{"size", func(d *decoder, n *node, r *resources) { r.disk = readSpan(d, n, parseMemory) }, true},
}

// span reads an amount, a range, or an object with min and max; nil after a
// problem.
func readSpan(d *decoder, n *node, one func(string) (float64, error)) *span {
	var s span
	var err error
	if n.Kind == document.ObjectKind {
		before := d.Count()
		document.Object(d, n, spanFields(one), &s)
		if d.Count() > before {
			return nil
		}
		if err = s.check(); !s.hasLow && !s.hasHigh {
			d.Problem(n, "is an empty range", `give "min", "max" or both`)
			return nil
		}
	} else {
		if n.Kind != document.StringKind && n.Kind != document.NumberKind {
			d.WrongKind(n, "an amount or a range such as 2..8")
			return nil
		}
		s, err = parseSpan(n.Text, one)
	}
	if err != nil {
		d.Problem(n, err.Error(), "")
		return nil
	}
	return &s
}

func spanFields(one func(string) (float64, error)) []field[span] {
	end := func(to func(*span, float64)) func(*decoder, *node, *span) {
		return func(d *decoder, n *node, s *span) {
			text, ok := d.Scalar(n)
			if !ok {
				return
			}
			x, err := one(text)
			if err != nil {
				d.Problem(n, err.Error(), "")
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
func readCPU(d *decoder, n *node) *span {
	if n.Kind != document.StringKind || !strings.ContainsFunc(n.Text, func(c rune) bool { return c < 0x80 && isLetter(byte(c)) }) {
		return readSpan(d, n, parseCount)
	}
	count := &span{low: defaultCPUs, hasLow: true}
	for part := range strings.SplitSeq(strings.ReplaceAll(n.Text, " ", ""), ":") {
		switch strings.ToLower(part) {
		case "x86":
		case "arm":
			d.Problem(n, "asks for ARM processors, which no node has", "remove \"arm\", and use an image for x86")
			return nil
		default:
			s, err := parseSpan(part, parseCount)
			if err != nil {
				d.Problem(n, err.Error(), "")
				return nil
			}
			count = &s
		}
	}
	return count
}

// readGPU reads a number, the short form, or an object.
func (r *resources) readGPU(d *decoder, n *node) {
	if n.Kind == document.ObjectKind {
		r.gpu = &gpuSpec{}
		document.Object(d, n, gpuFields, r)
		return
	}
	if n.Kind != document.StringKind && n.Kind != document.NumberKind {
		d.WrongKind(n, "a number, a text such as A100:80GB:2, or an object")
		return
	}
	g, err := parseGPU(n.Text)
	if err != nil {
		d.Problem(n, fmt.Sprintf("is %s, which %v", document.Quote(n.Text), err), "write VENDOR:NAME,NAME:MEMORY:COUNT with what is needed of it, as A100:80GB:2, 24GB.. or 2")
		return
	}
	r.gpu = &g
	checkGPUVendor(d, n, cmp.Or(g.vendor, vendorOf(g.names)))
}

var gpuFields = []field[resources]{
	{"vendor", foreign.OfText(func(d *decoder, n *node, r *resources, s string) {
		if r.gpu.vendor = gpuVendors[strings.ToLower(s)]; r.gpu.vendor == "" {
			d.Problem(n, fmt.Sprintf("is %s, which is no vendor: nvidia, amd, google, intel or tenstorrent", document.Quote(s)), "")
			return
		}
		checkGPUVendor(d, n, r.gpu.vendor)
	}), false},
	{"name", func(d *decoder, n *node, r *resources) {
		if r.gpu.names = d.Strs(n); r.gpu.vendor == "" {
			checkGPUVendor(d, n, vendorOf(r.gpu.names))
		}
	}, false},
	{"count", func(d *decoder, n *node, r *resources) { r.gpu.count = readSpan(d, n, parseCount) }, false},
	{"memory", func(d *decoder, n *node, r *resources) { r.gpu.memory = readSpan(d, n, parseMemory) }, false},
	{"total_memory", func(d *decoder, n *node, r *resources) { r.total = readSpan(d, n, parseMemory) }, false},
	{"compute_capability", func(d *decoder, n *node, r *resources) { r.capability = readCapability(d, n) }, false},
}

// namesOf are what the accelerators of other vendors are called.
var namesOf = map[string]string{
	"amd":         `(?i)^MI[0-9]{2,3}[A-Z]?$`,
	"google":      `(?i)^(tpu-)?v[2-9](litepod|[ep])?-[0-9]+$`,
	"intel":       `(?i)^gaudi ?[0-9]?$`,
	"tenstorrent": `(?i)^(n150|n300|p150)[a-z]?$`,
}

// vendorOf is the vendor that all of the names are of; "" if it is NVIDIA, or not told
// by them.
func vendorOf(names []string) string {
	if len(names) == 0 {
		return ""
	}
	for _, vendor := range slices.Sorted(maps.Keys(namesOf)) {
		form := regexp.MustCompile(namesOf[vendor]) // here: commands that read no such file start without it
		if !slices.ContainsFunc(names, func(s string) bool { return !form.MatchString(s) }) {
			return vendor
		}
	}
	return ""
}

func checkGPUVendor(d *decoder, n *node, vendor string) {
	if vendor != "" && vendor != "nvidia" {
		d.Problem(n, fmt.Sprintf("asks for accelerators of %s, and nodes have GPUs of NVIDIA only", vendor), "name GPUs of NVIDIA, or none")
	}
}

// capability reads 7.5, "7.5" or [7, 5].
func readCapability(d *decoder, n *node) float64 {
	text := n.Text
	if n.Kind == document.ArrayKind && len(n.Kids) == 2 {
		text = n.Kids[0].Text + "." + n.Kids[1].Text
	} else if n.Kind != document.NumberKind && n.Kind != document.StringKind {
		d.WrongKind(n, "a compute capability such as 7.5")
		return 0
	}
	var major, minor int
	if _, err := fmt.Sscanf(text+"|", "%d.%d|", &major, &minor); err != nil || major < 1 || major > 99 || minor < 0 || minor > 9 {
		d.Problem(n, fmt.Sprintf("is %s, which is no compute capability", document.Quote(text)), "write major.minor, such as 7.5 or 9.0")
		return 0
	}
	return float64(major*10+minor) / 10
}

// apply turns ranges into the amounts that are asked for: what a job gets here
// is exact, so it is the least that the file allows.
func (r *resources) apply(d *decoder, n *node, spec *job.Spec) {
	g, to := spec.Gbatch, &spec.Request.Resources
	at := func(key string) *node {
		if n != nil && n.Child(key) != nil {
			return n.Child(key)
		}
		return n
	}
	cpus, memory := float64(defaultCPUs), float64(defaultMemory)
	if r.cpu != nil {
		cpus = max(1, r.cpu.least(1))
		noteRounded(d, at("cpu"), r.cpu, amount(int(cpus), "core"))
	}
	if r.memory != nil {
		memory = r.memory.least(defaultMemory)
		noteRounded(d, at("memory"), r.memory, fmt.Sprintf("%d GB", max(1, roundUp(memory))))
	}
	if more := r.roomForShm(memory); more > memory {
		memory = more
		d.Note(at("shm_size"), fmt.Sprintf("is a part of the memory, of which %d GB are asked for", roundUp(memory)))
	}
	share := r.sharesNode()
	if share {
		g.ShareOfNode = true
		d.Note(n, "leaves cores and memory open: with the GPUs comes their share of the node, and at least what is asked for")
	}
	if n != nil && r.cpu == nil && !share {
		d.Note(n, "names no cpu: asked for is "+amount(defaultCPUs, "core"))
	}
	if n != nil && r.memory == nil && r.shm == 0 && !share {
		d.Note(n, fmt.Sprintf("names no memory: asked for is %d GB", defaultMemory))
	}
	to.CPUs, to.CPUMemoryGB = int(cpus), max(1, roundUp(memory))
	g.ShmSizeMB = int(math.Ceil(r.shm * 1024))
	if r.disk != nil {
		g.DiskGB = max(1, roundUp(r.disk.least(1)))
		noteRounded(d, at("disk"), r.disk, fmt.Sprintf("%d GB", g.DiskGB))
	}
	if n != nil {
		d.Becomes(r.at("cpus"), at("cpu"))
		d.Becomes(r.at("cpuMemoryGb"), at("memory"))
		d.Becomes("gbatch.shmSizeMb", at("shm_size"))
		d.Becomes("gbatch.diskGb", at("disk"))
	}
	if r.gpu != nil {
		r.applyGPU(d, at("gpu"), spec)
	}
}

// sharesNode says whether a task asks for GPUs and for no certain number of cores
// and amount of memory: dstack gives it all of a machine, or its part.
func (r *resources) sharesNode() bool {
	open := func(s *span) bool { return s == nil || s.hasLow && !s.hasHigh }
	return r.gpu != nil && (r.gpu.count == nil || r.gpu.count.least(1) > 0) && open(r.cpu) && open(r.memory)
}

// rounded tells what a range became.
func noteRounded(d *decoder, n *node, s *span, what string) {
	if !s.exact() {
		d.Note(n, "is a range, and amounts are exact here: asked for is "+what)
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
func (r *resources) roomForShm(memory float64) float64 {
	if r.shm == 0 || r.memory != nil && r.memory.exact() {
		return memory
	}
	if r.memory != nil && r.memory.hasHigh {
		return min(memory+r.shm, r.memory.high)
	}
	return memory + r.shm
}

func (r *resources) applyGPU(d *decoder, n *node, spec *job.Spec) {
	g, to := r.gpu, &spec.Request.Resources
	place := func(key string) *node {
		if kid := n.Child(key); kid != nil {
			return kid
		}
		return n
	}
	count := span{low: 1, high: 1, hasLow: true, hasHigh: true}
	if g.count != nil {
		count = *g.count
	}
	to.GPUs = count.least(1)
	noteRounded(d, place("count"), &count, amount(int(to.GPUs), "GPU"))
	d.Becomes(r.at("gpus"), place("count"))
	if to.GPUs == 0 {
		return // what follows is about GPUs
	}
	if len(g.names) > 0 {
		to.GPUModel = nil
		for _, name := range g.names {
			to.GPUModel = append(to.GPUModel, "="+name+" *")
		}
		d.Becomes(r.at("gpuModel"), place("name"))
		d.Note(place("name"), "is read as any GPU of the model "+strings.Join(g.names, " or ")+", whatever its memory and form")
	}
	if r.capability > 0 {
		spec.Gbatch.MinComputeCapability = r.capability
		d.Becomes(r.at("minComputeCapability"), place("compute_capability"))
	}
	least := 0.0
	from := place("memory")
	if g.memory != nil {
		least = g.memory.least(0)
		if g.memory.hasHigh && !g.memory.exact() {
			d.Note(from, "has an upper end, which is not used: GPUs with more memory are taken too")
		}
	}
	if r.total != nil {
		if each := r.total.least(0) / to.GPUs; each > least {
			least, from = each, place("total_memory")
		}
		d.Note(place("total_memory"), fmt.Sprintf("is read as memory of each of %d GPUs", int(to.GPUs)))
	}
	if least == 0 {
		return
	}
	to.GPUMemoryGB = max(1, int(least*nominalGPUMemory))
	d.Becomes(r.at("gpuMemoryGb"), from)
	d.Note(from, fmt.Sprintf("is read as at least %d GB, since GPUs have a little less than they are sold with", to.GPUMemoryGB))
}

// nominalGPUMemory is how much of the memory that a GPU is sold with it has at
// least for programs: an L40S of 48 GB has 44.99 GiB, a T4 of 16 GB 15 GiB.
const nominalGPUMemory = 0.93
