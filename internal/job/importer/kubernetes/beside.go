package kubernetes

import (
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/sizes"
)

// amounts are what containers ask for beside the job's own.
type amounts struct {
	milli, bytes int64
	gpus         int // whole ones
}

func (a amounts) cores() int { return int((a.milli + 999) / 1000) }

func (a amounts) gib() int {
	if a.bytes == 0 {
		return 0
	}
	return wholeGiB(a.bytes)
}

// goesOn says that a container runs at the same time as the job's own.
func (c *container) goesOn() bool { return c.sidecar || strings.HasPrefix(c.prefix, "gbatch.beside") }

// alongside adds what containers ask for that run at the same time: a pod has the sum.
func (k *manifest) alongside(d *decoder) {
	own := amounts{int64(k.spec.Request.Resources.CPUs) * 1000, int64(k.spec.Request.Resources.CPUMemoryGB) << 30, int(k.spec.Request.Resources.GPUs)}
	if x, ok := k.main.asked("cpu", 1000); ok {
		own.milli = x
	}
	if x, ok := k.main.asked("memory", 1); ok {
		own.bytes = x
	}
	if k.main.startup != nil {
		d.Note(k.main.startup, hangs)
	}
	several, nodes := false, slices.Concat(k.initNodes, k.mateNodes)
	for i, c := range slices.Concat(k.inits, k.mates) {
		if c.goesOn() {
			several = true
			own.add(k.joins(d, c, nodes[i]))
		}
	}
	switch {
	case k.shares != nil && several:
		d.Problem(k.shares, "is not supported", "containers of a job see their own processes only; they share volumes and the network")
	case k.shares != nil:
		d.Note(k.shares, "is not used: no container runs beside another one")
	}
	if !several {
		return
	}
	r := &k.spec.Request.Resources
	if r.CPUs != own.cores() || r.CPUMemoryGB != own.gib() {
		d.Note(k.mainNode, fmt.Sprintf("has %d cores and %d GiB with the containers that run beside it: they are asked for together", own.cores(), own.gib()))
	}
	if own.gpus > int(r.GPUs) {
		d.Note(k.mainNode, fmt.Sprintf("has %d GPUs with the containers that run beside it, and each sees its own: they are asked for together", own.gpus))
	}
	r.CPUs, r.CPUMemoryGB, r.GPUs = own.cores(), own.gib(), float64(own.gpus)
	if k.codesOf != nil && len(k.mates) > 0 {
		d.Problem(k.codesOf, "is one of several containers, and a rule is about the exit code of whichever failed first", "remove it, where the code says enough")
	}
}

func (a *amounts) add(b amounts) {
	a.milli, a.bytes, a.gpus = a.milli+b.milli, a.bytes+b.bytes, a.gpus+b.gpus
}

// joins is what a container asks for that runs beside the job's own.
func (k *manifest) joins(d *decoder, c *container, n *node) (a amounts) {
	a.milli, _ = c.amount(d, "cpu", 1000)
	a.bytes, _ = c.amount(d, "memory", 1)
	if disk, ok := c.amount(d, "ephemeral-storage", 1); ok {
		k.spec.Gbatch.DiskGB += wholeGiB(disk)
	}
	if gpus, ok := c.amount(d, "nvidia.com/gpu", 1); ok {
		c.spec.Request.Resources.GPUs = float64(gpus)
	}
	c.modelled(d)
	c.claimed(d)
	c.known(d)
	k.sameGPUs(d, c, n)
	a.gpus = int(c.spec.Request.Resources.GPUs)
	c.spec.Request.Resources.CPUs, c.spec.Request.Resources.CPUMemoryGB = a.cores(), a.gib()
	switch {
	case c.startup != nil && c.sidecar:
		d.Problem(c.startup, "is what the containers after it wait for, and nobody looks here whether a program is up", "have them wait in their commands, as `until nc -z localhost PORT; do sleep 1; done; exec PROGRAM`")
	case c.startup != nil:
		d.Note(c.startup, hangs)
	}
	c.takes = a
	return a
}

// sameGPUs refuses GPUs of another kind than those of the job's own container. Claims are
// not divided: containers that use one have the same devices.
func (k *manifest) sameGPUs(d *decoder, c *container, n *node) {
	own, of := &k.spec.Request.Resources, &c.spec.Request.Resources
	switch {
	case of.GPUs == 0:
	case (c.claimNode != nil || k.main.claimNode != nil) && (c.goesOn() || of.GPUs > own.GPUs):
		d.Problem(n, "uses GPUs by a claim beside another container that has some", "ask for nvidia.com/gpu in each container, which then has GPUs of its own; in a native job several can have the same, by gpus of gbatch.beside")
	case own.GPUs == 0 && k.kindOfGPUs == nil:
		own.GPUModel, own.GPUMemoryGB, k.kindOfGPUs = of.GPUModel, of.GPUMemoryGB, n
	case !slices.Equal(own.GPUModel, of.GPUModel) || own.GPUMemoryGB != of.GPUMemoryGB:
		d.Problem(n, "asks for other GPUs than the container, and a job has those of one kind", "ask for the same in both, or leave it out")
	}
}

// divide says which container has how many of the job's GPUs, where not one has all.
func (k *manifest) divide() {
	all, g := int(k.spec.Request.Resources.GPUs), k.spec.Gbatch
	has := k.ownGPUs
	alike := has == all
	k.each(func(b *job.Before, c *container, _ *node) {
		n := int(c.spec.Request.Resources.GPUs)
		alike = alike && (n == 0 || n == all && !c.goesOn())
	})
	k.each(func(b *job.Before, c *container, _ *node) {
		n := int(c.spec.Request.Resources.GPUs)
		if b.GPUs = alike && n > 0; !alike {
			b.OwnGPUs = n
		}
	})
	if !alike {
		g.OwnGPUs = &has
	}
}

// asked is amount, of what was told of before.
func (c *container) asked(name string, scale float64) (int64, bool) {
	n := c.of(name)
	if n == nil {
		return 0, false
	}
	x, err := sizes.Quantity(n.Text)
	return int64(x * scale), err == nil && x*scale <= 1<<53
}

// ownMemory is the bound on a container's memory within that of all, MiB; 0: it has none.
func (c *container) ownMemory(d *decoder) int {
	n := c.limits["memory"]
	if n == nil || n.Kind == document.NullKind {
		return 0
	}
	bytes, ok := c.asked("memory", 1)
	if !ok {
		return 0
	}
	d.Becomes(c.path("gbatch.memoryMb"), n)
	return max(8, int((bytes+(1<<20)-1)>>20))
}
