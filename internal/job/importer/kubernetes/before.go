package kubernetes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/expand"
)

// readInits reads containers that begin before the one of the job, one after the other.
func readInits(d *decoder, n *node, k *manifest) {
	d.Elements(n, func(n *node) {
		c := k.apartFrom(fmt.Sprintf("gbatch.before[%d].", len(k.inits)))
		document.Object(d, n, containerFields, c)
		k.inits, k.initNodes = append(k.inits, c), append(k.initNodes, n)
	})
}

// path is where in the native document a field of the container is, given where it is
// for that of the job.
func (k *manifest) path(of string) string {
	if k.prefix == "" {
		return of
	}
	return k.prefix + strings.TrimPrefix(strings.TrimPrefix(of, "request.docker."), "gbatch.")
}

// containers makes the job's command and its other programs, when all is read.
func (k *manifest) containers(d *decoder) {
	k.spec.Request.Docker.User = k.main.user(k)
	k.uncover(d)
	k.main.combine(d, k.mainNode)
	k.main.locks(d)
	k.main.variables(d)
	k.ownGPUs = int(k.spec.Request.Resources.GPUs)
	k.alongside(d)
	for i, c := range k.inits {
		k.spec.Gbatch.Before = append(k.spec.Gbatch.Before, k.program(d, c, k.initNodes[i]))
	}
	for i, c := range k.mates {
		k.spec.Gbatch.Beside = append(k.spec.Gbatch.Beside, k.program(d, c, k.mateNodes[i]))
	}
	k.divide()
	k.spec.Gbatch.FailTogether = k.together && len(k.mates) > 0
	k.clashes(d)
	k.declareSecrets(d)
	command := k.main.templates(d, orNull(k.mainNode.Given("command")), k.main.command)
	args := k.main.templates(d, orNull(k.mainNode.Given("args")), k.main.args)
	k.each(func(b *job.Before, c *container, n *node) {
		b.Entrypoint = c.templates(d, orNull(n.Given("command")), c.command)
		if argv := c.templates(d, orNull(n.Given("args")), c.args); len(argv) > 0 {
			b.Command = job.Command{Argv: argv}
		}
		k.runsDynamic = k.runsDynamic || c.runsDynamic
	})
	k.apart()
	k.finish(command, args)
}

// each goes through the programs but the job's own, with their containers.
func (k *manifest) each(do func(*job.Before, *container, *node)) {
	for i, c := range k.inits {
		do(&k.spec.Gbatch.Before[i], c, k.initNodes[i])
	}
	for i, c := range k.mates {
		do(&k.spec.Gbatch.Beside[i], c, k.mateNodes[i])
	}
}

// user is who a container runs as: what it says itself, or the pod. Empty: its image's.
func (c *container) user(k *manifest) string {
	user, group := cmp.Or(c.ownUser, k.runAs), cmp.Or(c.ownGroup, k.runAsGroup)
	if group != "" {
		return cmp.Or(user, "0") + ":" + group
	}
	return user
}

// program makes one of the job's programs of a container that is not its own.
func (k *manifest) program(d *decoder, c *container, n *node) job.Before {
	c.uncover(d)
	own := &c.spec.Request.Docker
	b := job.Before{Name: c.called, Image: own.Image, WorkingDir: own.WorkingDir, Storage: own.Storage, Files: c.spec.Gbatch.Files, User: c.user(k), Sidecar: c.sidecar}
	if b.Name == "" {
		d.Missing(n, "name", "")
		b.Name = "init"
	}
	if c.spec.Gbatch.Privileged && !k.spec.Gbatch.Privileged {
		d.Problem(n, "is privileged, and the container is not: both are here or none", "make the container privileged, too, where the site allows it")
	}
	for _, one := range c.spec.Gbatch.Capabilities {
		if !slices.Contains(k.spec.Gbatch.Capabilities, one) {
			k.spec.Gbatch.Capabilities = append(k.spec.Gbatch.Capabilities, one)
		}
	}
	c.runAs, c.runAsGroup = k.runAs, k.runAsGroup
	c.namespace, c.indexed, c.secrets, c.name, c.generateName, c.podLabels = k.namespace, k.indexed, k.secrets, k.name, k.generateName, k.podLabels
	c.spec.Gbatch.Secrets = k.spec.Gbatch.Secrets
	if c.goesOn() {
		b.MemoryMB = c.ownMemory(d)
	} else {
		k.asMuchAs(d, c, n)
	}
	if c.sidecar {
		k.along.add(c.takes)
	}
	c.locks(d)
	c.variables(d)
	k.secrets, k.spec.Gbatch.Secrets = c.secrets, c.spec.Gbatch.Secrets
	return b
}

// asMuchAs gives the job what an init container asks for where that is more: a pod has
// the larger of both.
func (k *manifest) asMuchAs(d *decoder, c *container, n *node) {
	r, own := &k.spec.Request.Resources, &c.spec.Request.Resources
	if c.startup != nil {
		d.Note(c.startup, hangs)
	}
	asked := len(c.requests)+len(c.limits) > 0
	if !asked {
		*own = *r
		own.GPUs = 0
		return
	}
	quiet := []string{"cpu", "memory"}
	for _, name := range quiet { // what it leaves out is the job's
		if c.of(name) == nil && k.main.of(name) != nil {
			c.limits[name] = k.main.of(name)
		}
	}
	c.combine(d, n)
	k.sameGPUs(d, c, n)
	more := max(r.GPUs, own.GPUs+float64(k.along.gpus))
	if own.CPUs > r.CPUs || own.CPUMemoryGB > r.CPUMemoryGB || more > r.GPUs {
		d.Note(n, "asks for more than the container: the job has the larger amounts for its whole time")
	}
	r.GPUs = more
	r.CPUs, r.CPUMemoryGB = max(r.CPUs, own.CPUs+k.along.cores()), max(r.CPUMemoryGB, own.CPUMemoryGB+k.along.gib())
	k.spec.Gbatch.DiskGB = max(k.spec.Gbatch.DiskGB, c.spec.Gbatch.DiskGB)
}

// apart makes a tmpfs of its own of each volume in memory that is mounted once: what
// several mounts show is made for the job.
func (k *manifest) apart() {
	mounts := map[string]int{}
	for _, m := range k.spec.Mounts() {
		mounts[m.Volume]++
	}
	alone := func(list []job.Storage) {
		for i, m := range list {
			if m.OfMemory && m.SubPath == "" && (mounts[m.Volume] == 1 || m.ContainerPath == "/dev/shm") {
				list[i] = job.Storage{HostPath: job.TmpfsHostPath, ContainerPath: m.ContainerPath, OfMemory: true, SizeGB: m.SizeGB}
			}
		}
	}
	alone(k.spec.Request.Docker.Storage)
	for _, b := range k.spec.Programs() {
		alone(b.Storage)
	}
}

// finish has commands and variables as they are if nothing of them is known on the
// node only.
func (k *manifest) finish(command, args []string) {
	g := k.spec.Gbatch
	g.ExpandVariables = k.runsDynamic
	if len(command) > 0 {
		g.Entrypoint = k.plain(command)
	}
	if len(args) > 0 {
		k.spec.Request.Docker.Command = job.Command{Argv: k.plain(args)}
	}
	k.spec.Request.Docker.Environment = k.environment(k.main)
	k.each(func(b *job.Before, c *container, _ *node) {
		b.Entrypoint, b.Command.Argv, b.Environment = k.plain(b.Entrypoint), k.plain(b.Command.Argv), k.environment(c)
	})
}

// plain writes templates out, unless the node does.
func (k *manifest) plain(list []string) []string {
	if !k.spec.Gbatch.ExpandVariables {
		for i := range list {
			list[i] = expand.Variables(list[i], func(string) (string, bool) { return "", false })
		}
	}
	return list
}

// environment is the variables of a container.
func (k *manifest) environment(c *container) map[string]string {
	var out map[string]string
	for _, name := range c.names {
		if out == nil {
			out = map[string]string{}
		}
		out[name] = k.plain([]string{c.values[name]})[0]
	}
	return out
}

func (k *manifest) jobName() string {
	if k.name != "" {
		return k.name
	}
	return strings.TrimRight(k.generateName, "-")
}
