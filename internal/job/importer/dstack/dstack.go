// Package dstack reads dstack's tasks. Its other documents are refused with what
// to do instead. It is pure.
package dstack

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/foreign"
)

type (
	decoder      = foreign.Decoder
	node         = document.Node
	field[T any] = foreign.Field[T]
)

// Source is the format's name, which a job keeps.
const Source = "dstack"

// Options are what a file alone does not say.
type Options struct {
	Image string                                    // where the task names none
	Env   func(name string) (value string, ok bool) // variables of its author; nil: not known
	Args  []string                                  // of the run
}

// task is a task of dstack while it is read. Names of fields are the
// document's.
type task struct {
	sub job.Submission
	o   Options

	interpolation *regexp.Regexp

	env        map[string]string // what ${{ env.NAME }} stands for
	unset      map[string]bool   // names in env whose value is not known here
	secret     map[string]bool   // names in env whose value is a secret
	commands   []string
	entrypoint []string
	shell      string
	python     string
	nvcc       bool
	user, pass string // of registry_auth
	authAt     *node
	resources  resources
	along      []brought // files and repos
	groups     []group
	docker     bool // it runs containers of its own
}

// noName is the name of a task that has none; dstack makes one up by chance.
const noName = "dstack-task"

// Parse reads a task.
func Parse(data []byte, o Options) (job.Submission, error) {
	n, err := document.Read(data)
	if err != nil {
		return job.Submission{}, err
	}
	d := foreign.New()
	if other := isOther(d, n); other {
		return job.Submission{}, d.Problems()
	}
	t := &task{o: o, interpolation: regexp.MustCompile(interpolation)}
	t.sub.Spec.Gbatch = &job.Gbatch{Source: Source, StopSignal: "INT", StopGrace: stopGrace}
	t.sub.Spec.Name = noName
	if env := n.Given("env"); env != nil {
		t.readEnv(d, env) // first: other values may name them
	}
	if document.Object(d, n, fields, t) {
		grouped := n.Given("groups") != nil
		if grouped {
			t.applyGroups(d, n)
		}
		t.applyImage(d, n)
		t.applyCommand(d, n)
		t.applyGang(d, n)
		t.applyAlong(d)
		if !grouped {
			t.resources.apply(d, n.Given("resources"), &t.sub.Spec)
		}
		if n.Given("resources") == nil && !grouped {
			d.Note(n, fmt.Sprintf("names no resources: %d cores and %d GB of memory are asked for, and no GPU", defaultCPUs, defaultMemory))
		}
	}
	return d.Finish(t.sub)
}

// Keys are those that dstack's documents alone have.
func Keys() []string {
	return []string{"commands", "spot_policy", "max_price", "registry_auth", "utilization_policy", "stop_criteria", "idle_duration", "creation_policy"}
}

// TakesArguments says whether a task's commands name those of its run.
func TakesArguments(data []byte) bool {
	return regexp.MustCompile(`\$\{\{\s*run\.args\s*\}\}`).Match(data)
}

// IsType says whether a word is the type of one of dstack's documents.
func IsType(word string) bool { return types[word] != "" }

// types are the types of dstack's documents, with what to do instead of
// those that are no tasks.
var types = map[string]string{
	"task":            "a task",
	"dev-environment": "submit a task whose command stays, as sleep infinity, and open a shell in it with gexec",
	"service":         "gbatch runs jobs that end; a server can run as a task with ports, which gexec --forward reaches",
	"fleet":           "nodes are the site's: see ginfo",
	"volume":          "storage is the site's: mount one of its directories with volumes",
	"gateway":         "gbatch has no gateways: reach a port of a task with gexec --forward",
}

// isOther refuses what dstack can run or keep besides tasks.
func isOther(d *decoder, n *node) bool {
	kind := n.Child("type")
	switch {
	case n.Kind != document.ObjectKind:
		d.WrongKind(n, "an object")
	case kind == nil:
		d.Missing(n, "type", `write "type: task"`)
	case kind.Kind != document.StringKind || types[kind.Text] == "":
		d.Problem(kind, fmt.Sprintf("must be task, is %s", document.Quote(kind.Text)), "")
	case kind.Text != "task":
		d.Problem(kind, fmt.Sprintf("is %s, and gbatch runs tasks", document.Quote(kind.Text)), types[kind.Text])
	default:
		return false
	}
	return true
}

const (
	cloudOnly  = "is not used: nodes are the site's own, they are not rented for a job and cost nothing by the hour"
	deprecated = "is not used: it is deprecated in dstack, too, and nodes here stay when a job ends"
)

var fields = []field[task]{
	{"type", func(*decoder, *node, *task) {}, true}, // see isOther
	{"name", foreign.OfText(readName), false},
	{"nodes", readNodes, false},
	{"groups", readGroups, false},

	{"image", readImage, false},
	{"python", readPython, false},
	{"nvcc", func(d *decoder, n *node, t *task) { t.nvcc, _ = d.Boolean(n) }, false},
	{"docker", readDocker, false},
	{"user", func(d *decoder, n *node, t *task) { d.Word(n, &t.sub.Spec.Request.Docker.User, "request.docker.user") }, false},
	{"privileged", func(d *decoder, n *node, t *task) { d.Truth(n, &t.sub.Spec.Gbatch.Privileged, "gbatch.privileged") }, false},
	{"entrypoint", foreign.OfText(readEntrypoint), false},
	{"commands", readCommands, false},
	{"shell", foreign.OfText(readShell), false},
	{"working_dir", readWorkDir, false},
	{"home_dir", foreign.Remark[task]("is not used: it is deprecated and has no effect in dstack, too"), false},
	{"setup", foreign.Remark[task]("is not used: it is deprecated and has no effect in dstack, too"), false},
	{"registry_auth", readAuth, false},
	{"env", func(*decoder, *node, *task) {}, false}, // was read before
	{"volumes", readVolumes, false},
	{"ports", readPorts, false},
	{"repos", readRepos, false},
	{"files", readFiles, false},
	{"dstack", func(d *decoder, n *node, _ *task) {
		if on, ok := d.Boolean(n); ok && on {
			d.Problem(n, "is true, and there is no dstack that the task could call", "remove it: jobs submit others by gsubmit and a token of their user")
		}
	}, false},
	{"single_branch", foreign.Remark[task]("is not used: gbatch clones no repository"), false},
	{"ide", foreign.Remark[task]("is not used: it is about development environments"), false},
	{"resources", func(d *decoder, n *node, t *task) { document.Object(d, n, resourceFields, &t.resources) }, false},

	{"backends", feature("backend"), false},
	{"regions", feature("region"), false},
	{"availability_zones", feature("zone"), false},
	{"instance_types", feature("instance-type"), false},
	{"fleets", feature("fleet"), false},
	{"instances", readInstances, false},
	{"instance_name", readInstances, false},
	{"reservation", foreign.OfText(readReservation), false},
	{"backend_options", foreign.Remark[task](cloudOnly), false},
	{"spot_policy", wordOf(cloudOnly, "spot", "on-demand", "auto"), false},
	{"max_price", readPrice, false},
	{"creation_policy", wordOf(cloudOnly, "reuse", "reuse-or-create"), false},
	{"idle_duration", readIdle, false},
	{"termination_policy", wordOf(deprecated, "dont-destroy", "destroy-after-idle"), false},
	{"termination_idle_time", foreign.Remark[task](deprecated), false},
	{"pool_name", foreign.Remark[task](deprecated), false},

	{"priority", readPriority, false},
	{"retry", readRetry, false},
	{"build", foreign.Refuse[task]("dstack itself knows it no more: put its commands first among commands"), false},
	{"retry_policy", foreign.Refuse[task](`write "retry" with on_events and duration`), false},
	{"max_duration", readMaxDuration, false},
	{"stop_duration", readStopDuration, false},
	{"utilization_policy", readUtilization, false},
	{"schedule", readSchedule, false},
	{"startup_order", readOrder, false},
	{"stop_criteria", readStop, false},
	{"tags", readTags, false},
}

// wordOf checks a word of a list and says why it changes nothing here.
func wordOf(message string, words ...string) func(*decoder, *node, *task) {
	return func(d *decoder, n *node, _ *task) {
		if _, ok := d.OneOf(n, words...); ok {
			d.Note(n, message)
		}
	}
}

// feature turns a list of places into features that the node has one of.
func feature(name string) func(*decoder, *node, *task) {
	return func(d *decoder, n *node, t *task) {
		if words := d.Strs(n); len(words) > 0 {
			d.AnyFeature(n, t.sub.Spec.Gbatch, name, words...)
		}
	}
}

func readName(d *decoder, n *node, t *task, s string) {
	if !document.IsName(s, "-", 41) || len(s) < 2 || s != strings.ToLower(s) || s[0] < 'a' {
		d.Problem(n, fmt.Sprintf("is %s: want 2 to 41 lower-case letters, digits and -, the first a letter", document.Quote(s)), "")
		return
	}
	t.sub.Spec.Name = s
	d.Becomes("name", n)
}

func readNodes(d *decoder, n *node, t *task) {
	if x, ok := d.Integer(n, 1, 10_000); ok && x > 1 {
		t.sub.Spec.Gbatch.Nodes = x
	}
	d.Becomes("gbatch.nodes", n)
}

func readOrder(d *decoder, n *node, t *task) {
	if s, ok := d.OneOf(n, "any", job.MasterFirst, job.WorkersFirst); ok && s != "any" {
		t.sub.Spec.Gbatch.StartOrder = s
	}
}

func readStop(d *decoder, n *node, t *task) {
	if s, ok := d.OneOf(n, "all-done", job.MasterDone); ok && s != "all-done" {
		t.sub.Spec.Gbatch.StopWhen = s
	}
}

// applyGang drops what is about several nodes from a task on one.
func (t *task) applyGang(d *decoder, n *node) {
	g := t.sub.Spec.Gbatch
	if t.sub.Spec.Ranks() > 1 {
		return
	}
	for _, key := range []string{"startup_order", "stop_criteria"} {
		if kid := n.Given(key); kid != nil && (g.StartOrder != "" || g.StopWhen != "") {
			d.Note(kid, "is not used: the task runs on one node")
		}
	}
	g.StartOrder, g.StopWhen = "", ""
}

func readTags(d *decoder, n *node, t *task) {
	if n.Kind != document.ObjectKind {
		d.WrongKind(n, "an object of names and values")
		return
	}
	labels := map[string]string{}
	for _, kid := range n.Kids {
		if _, twice := labels[kid.Key]; twice {
			d.Problem(kid, "is given twice", "keep one of them")
		} else if s, ok := d.Scalar(kid); ok {
			labels[kid.Key] = s
			d.Becomes(document.Member("gbatch.labels", kid.Key), kid)
		}
	}
	t.sub.Spec.Gbatch.Labels = labels
	d.Becomes("gbatch.labels", n)
}

func readReservation(d *decoder, n *node, t *task, s string) {
	if !job.IsUUID(s) {
		d.AnyFeature(n, t.sub.Spec.Gbatch, "reservation", s)
		return
	}
	t.sub.Spec.Request.Scheduling.ReservationIDs = []string{s}
	d.Becomes("request.scheduling.reservationIds", n)
}

const maxInstances = 100 // as native documents have it

// readInstances reads names of nodes, or objects with one.
func readInstances(d *decoder, n *node, t *task) {
	g := t.sub.Spec.Gbatch
	add := func(n *node) {
		s, ok := d.Str(n)
		if ok && !slices.Contains(g.NodeNames, s) {
			d.Becomes(fmt.Sprintf("gbatch.nodeNames[%d]", len(g.NodeNames)), n)
			g.NodeNames = append(g.NodeNames, s)
		}
	}
	name := func(d *decoder, n *node, _ *task) { add(n) }
	fields := []field[task]{
		{"name", name, false},
		{"hostname", name, false},
		{"fleet", foreign.Refuse[task](`name the node: "hostname"`), false},
		{"instance", foreign.Refuse[task](`name the node: "hostname"`), false},
	}
	if n.Kind == document.StringKind {
		add(n)
		return
	}
	if len(n.Kids) > maxInstances {
		d.Problem(n, fmt.Sprintf("has %d entries, at most %d are allowed", len(n.Kids), maxInstances), "")
		return
	}
	d.Elements(n, func(n *node) {
		if n.Kind == document.StringKind {
			add(n)
			return
		}
		document.Object(d, n, fields, t)
	})
}
