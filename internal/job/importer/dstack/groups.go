package dstack

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
)

// group is some of a task's nodes, which have commands of their own.
type group struct {
	name        string
	nodes       int
	first       int // rank of its first node
	commands    []string
	commandsAt  []*node
	resources   resources
	at          *node
	resourcesAt *node // else at
}

// isGroupName says whether a text can name a group.
func isGroupName(s string) bool {
	return s != "" && len(s) <= 40 && s[0] != '-' && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

var groupFields = []field[group]{
	{"name", func(d *decoder, n *node, g *group) {
		if g.name, _ = d.Str(n); !isGroupName(g.name) {
			d.Problem(n, fmt.Sprintf("is %s: want 1 to 40 lower-case letters, digits and -", document.Quote(g.name)), "")
		}
	}, false},
	{"nodes", func(d *decoder, n *node, g *group) {
		if x, ok := d.Integer(n, 1, 10_000); ok {
			g.nodes = x
		}
	}, false},
	{"commands", func(d *decoder, n *node, g *group) {
		d.Elements(n, func(n *node) {
			if s, ok := d.Str(n); ok {
				g.commands, g.commandsAt = append(g.commands, s), append(g.commandsAt, n)
			}
		})
	}, false},
	{"ports", func(d *decoder, n *node, _ *group) { readPorts(d, n, nil) }, false},
	{"resources", func(d *decoder, n *node, g *group) {
		g.resourcesAt = n
		document.Object(d, n, resourceFields, &g.resources)
	}, false},
}

// readGroups reads nodes that differ in what they run. They are one gang, which
// starts everywhere or nowhere.
func readGroups(d *decoder, n *node, t *task) {
	names, next := map[string]bool{}, 0
	d.Elements(n, func(n *node) {
		g := group{nodes: 1, first: next, at: n, resourcesAt: n, name: strconv.Itoa(len(t.groups))}
		document.Object(d, n, groupFields, &g)
		if names[g.name] {
			d.Problem(n, fmt.Sprintf("is a second group %s", document.Quote(g.name)), "give each a name of its own")
		}
		names[g.name] = true
		next += g.nodes
		t.groups = append(t.groups, g)
	})
	if n.Kind == document.ArrayKind && len(n.Kids) == 0 {
		d.Problem(n, "must not be empty", "")
	}
	if next > 1 {
		t.sub.Spec.Gbatch.Nodes = next
	}
	d.Becomes("gbatch.nodes", n)
}

// applyGroups makes one script of what the groups run, of which each node takes the
// part of its rank, and finds what each is to have.
func (t *task) applyGroups(d *decoder, n *node) {
	for _, key := range []string{"nodes", "commands", "ports", "entrypoint"} {
		if kid := n.Given(key); kid != nil {
			d.Problem(kid, "cannot be combined with groups", "give it in each group, or remove the groups")
		}
	}
	if n.Given("resources") != nil {
		d.Note(n.Given("resources"), "is not used: each group has its own")
		t.resources = resources{}
	}
	address := regexp.MustCompile(`^groups\[(\d{1,4})\]\.nodes\[(\d{1,4})\]\.IP_ADDRESS$`)
	var script strings.Builder
	for i, g := range t.groups {
		if len(g.commands) == 0 {
			d.Problem(g.at, "has no commands", "give each group commands: the image's own program would run on some nodes only")
			continue
		}
		var commands []string
		for k, c := range g.commands {
			commands = append(commands, t.groupCommand(d, g.commandsAt[k], c, address))
		}
		word := "if"
		if i > 0 {
			word = "elif"
		}
		fmt.Fprintf(&script, "%s [ \"$$DSTACK_NODE_RANK\" -lt %d ]; then\n%s\n", word, g.first+g.nodes, joinCommands(commands))
	}
	if t.commands = nil; script.Len() > 0 {
		t.commands = []string{script.String() + "fi"}
	}
	t.sub.Spec.Gbatch.ExpandVariables = true
	for name, value := range t.sub.Spec.Request.Docker.Environment {
		t.sub.Spec.Request.Docker.Environment[name] = strings.ReplaceAll(value, "$", "$$")
	}
	t.groupNodes(d)
}

// groupCommand is a command for job.Expand, with variables of the node for the
// addresses that it names.
func (t *task) groupCommand(d *decoder, n *node, command string, address *regexp.Regexp) string {
	var out strings.Builder
	rest := command
	for {
		at := t.interpolation.FindStringSubmatchIndex(rest)
		if at == nil {
			break
		}
		what := rest[at[2]:at[3]]
		out.WriteString(strings.ReplaceAll(rest[:at[0]], "$", "$$"))
		m := address.FindStringSubmatch(what)
		switch {
		case m != nil:
			i, _ := strconv.Atoi(m[1])
			j, _ := strconv.Atoi(m[2])
			if i >= len(t.groups) || j >= t.groups[i].nodes {
				d.Problem(n, fmt.Sprintf("names node %d of group %d, which there is not", j, i), "")
				break
			}
			out.WriteString("$(" + job.NodeAddressVariable(t.groups[i].first+j) + ")")
		default:
			out.WriteString(strings.ReplaceAll(t.runArgument(d, n, what, rest[at[0]:at[1]]), "$", "$$"))
		}
		rest = rest[at[1]:]
	}
	return out.String() + strings.ReplaceAll(rest, "$", "$$")
}

// groupNodes gives each node what its group asks for. Shared memory and the disk are the
// same for all nodes of a job: those of the group that asks for most.
func (t *task) groupNodes(d *decoder) {
	if len(t.groups) == 0 {
		return
	}
	var most resources
	for _, g := range t.groups {
		most.disk, most.shm = larger(most.disk, g.resources.disk), max(most.shm, g.resources.shm)
	}
	spec, alike := &t.sub.Spec, true
	for i := range t.groups {
		r := &t.groups[i].resources
		r.disk, r.shm = most.disk, most.shm
		alike = alike && reflect.DeepEqual(*r, t.groups[0].resources)
	}
	t.groups[0].resources.apply(d, t.groups[0].resourcesAt, spec)
	if alike {
		return
	}
	spec.Gbatch.Nodes = t.groups[0].nodes
	for i, g := range t.groups[1:] {
		own := job.Spec{Gbatch: &job.Gbatch{}}
		g.resources.path = fmt.Sprintf("gbatch.otherGroups[%d]", i)
		g.resources.apply(d, g.resourcesAt, &own)
		r := own.Request.Resources
		spec.Gbatch.OtherGroups = append(spec.Gbatch.OtherGroups, job.Group{
			Nodes: g.nodes, GPUs: r.GPUs, CPUs: r.CPUs, CPUMemoryGB: r.CPUMemoryGB, GPUModel: r.GPUModel, GPUMemoryGB: r.GPUMemoryGB,
			MinComputeCapability: own.Gbatch.MinComputeCapability, ShareOfNode: own.Gbatch.ShareOfNode,
		})
	}
}

// larger is the one of two amounts of which more is needed; nil is none.
func larger(a, b *span) *span {
	if a == nil || b != nil && b.least(0) > a.least(0) {
		return b
	}
	return a
}
