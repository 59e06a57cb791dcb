package kubernetes

import (
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
)

// readInits reads containers that run before the one of the job, one after the other.
func readInits(d *decoder, n *node, k *manifest) {
	d.Elements(n, func(n *node) {
		scratch := *k
		scratch.spec = job.Spec{Gbatch: &job.Gbatch{}}
		scratch.runAs, scratch.runAsGroup = "", ""
		c := newContainer(&scratch)
		document.Object(d, n, containerFields, c)
		k.inits, k.initNodes = append(k.inits, c), append(k.initNodes, n)
	})
}

// containers makes one command of what all containers do, when all is read.
func (k *manifest) containers(d *decoder) {
	k.main.combine(d, k.mainNode)
	k.main.variables(d)
	var lines []string
	for i, c := range k.inits {
		lines = append(lines, k.before(d, c, k.initNodes[i])...)
	}
	k.declareSecrets(d)
	command := k.main.templates(d, orNull(k.mainNode.Given("command")), k.main.command)
	args := k.main.templates(d, orNull(k.mainNode.Given("args")), k.main.args)
	if len(lines) > 0 {
		if len(command) == 0 {
			d.Problem(k.mainNode, "has no command, and something is to be done before it", "write the command: what the image runs is not known when the job is submitted")
		}
		script := strings.Join(append(lines, "exec "+quoted(append(command, args...))), "\n")
		command, args = []string{"/bin/sh", "-c", script}, nil
		if len(script) > maxScript {
			d.Problem(k.mainNode, fmt.Sprintf("has %d bytes to do before it, at most %d can be", len(script), maxScript), "bring large files by project storage")
		}
	}
	k.finish(command, args)
}

// maxScript bounds what one argument may have: the kernel takes 128 KiB.
const maxScript = 100 << 10

// finish has the job's command and variables as they are if nothing of them is known
// on the node only.
func (k *manifest) finish(command, args []string) {
	k.spec.Gbatch.ExpandVariables = k.runsDynamic
	plain := func(s string) string {
		if k.spec.Gbatch.ExpandVariables {
			return s
		}
		return job.Expand(s, func(string) (string, bool) { return "", false })
	}
	for _, list := range [][]string{command, args} {
		for i := range list {
			list[i] = plain(list[i])
		}
	}
	if len(command) > 0 {
		k.spec.Gbatch.Entrypoint = command
	}
	if len(args) > 0 {
		k.spec.Request.Docker.Command = job.Command{Argv: args}
	}
	for _, name := range k.main.names {
		if k.spec.Request.Docker.Environment == nil {
			k.spec.Request.Docker.Environment = map[string]string{}
		}
		k.spec.Request.Docker.Environment[name] = plain(k.main.values[name])
	}
}

// before is the line that runs an init container in the job's own: it has to have the
// same image and user, and its failure is the job's.
func (k *manifest) before(d *decoder, c *container, n *node) []string {
	docker, own := &k.spec.Request.Docker, &c.spec.Request.Docker
	if own.Image != docker.Image {
		d.Problem(orNull(n.Given("image")), "is another image than the container's, and a job has one",
			"give both the same image, or submit it as a job of its own that this one depends on (gsubmit --dependency afterok:ID), with a volume in project storage")
	}
	if c.runAs != "" && c.runAs != k.runAs || c.runAsGroup != "" && c.runAsGroup != k.runAsGroup || c.spec.Gbatch.Privileged && !k.spec.Gbatch.Privileged {
		d.Problem(n, "runs as somebody else than the container", "run both as the same user")
	}
	if own.WorkingDir == "" && docker.WorkingDir != "" {
		d.Problem(n, "has no workingDir, and the container has one", "give both one")
	}
	if len(c.command) == 0 {
		d.Problem(n, "has no command", "write the command: what the image runs is not known when the job is submitted")
	}
	c.namespace, c.indexed, c.secrets, c.name, c.generateName, c.podLabels = k.namespace, k.indexed, k.secrets, k.name, k.generateName, k.podLabels
	c.spec.Gbatch.Secrets = k.spec.Gbatch.Secrets
	c.spec.Request.Resources = k.spec.Request.Resources
	c.variables(d)
	k.secrets, k.spec.Gbatch.Secrets = c.secrets, c.spec.Gbatch.Secrets
	for _, s := range own.Storage {
		same := func(has job.Storage) bool { return has.ContainerPath == s.ContainerPath }
		i := slices.IndexFunc(docker.Storage, same)
		if i < 0 {
			docker.Storage = append(docker.Storage, s)
			continue
		}
		if docker.Storage[i].HostPath != s.HostPath {
			d.Problem(n, fmt.Sprintf("has another volume at %s than the container", document.Quote(s.ContainerPath)), "mount it at the same place in both")
		}
		docker.Storage[i].ReadOnly = docker.Storage[i].ReadOnly && s.ReadOnly
	}
	var b strings.Builder
	b.WriteString("( ")
	for _, name := range k.main.names {
		if _, own := c.values[name]; !own {
			fmt.Fprintf(&b, "unset %s; ", name)
		}
	}
	for _, name := range c.names {
		fmt.Fprintf(&b, "export %s=%s; ", name, quote(c.values[name]))
	}
	if own.WorkingDir != "" {
		fmt.Fprintf(&b, "cd %s && ", quote(literal(own.WorkingDir)))
	}
	command := append(c.templates(d, n, c.command), c.templates(d, n, c.args)...)
	fmt.Fprintf(&b, "exec %s ) || exit", quoted(command))
	k.runsDynamic = k.runsDynamic || c.runsDynamic
	k.takeOver(c.spec.Gbatch)
	d.Note(n, "runs before the command, in the job's own container")
	return []string{b.String()}
}

// takeOver adds the files and directories of an init container's volumes.
func (k *manifest) takeOver(from *job.Gbatch) {
	g := k.spec.Gbatch
	for _, f := range from.Files {
		if !slices.Contains(g.Files, f) {
			g.Files = append(g.Files, f)
		}
	}
	for _, dir := range from.Directories {
		if !slices.Contains(g.Directories, dir) {
			g.Directories = append(g.Directories, dir)
		}
	}
}

// quote writes a template as one word of a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func quoted(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = quote(w)
	}
	return strings.Join(out, " ")
}

func (k *manifest) jobName() string {
	if k.name != "" {
		return k.name
	}
	return strings.TrimRight(k.generateName, "-")
}
