package importer

import (
	"fmt"
	"regexp"
	"slices"

	"gbatch/internal/job"
)

// dstack is a task of dstack while it is read. Names of fields are the
// document's.
type dstack struct {
	sub job.Submission
	o   Options

	env        map[string]string // what ${{ env.NAME }} stands for
	unset      map[string]bool   // names in env whose value is not known here
	commands   []string
	entrypoint []string
	shell      string
	python     string
	nvcc       bool
	user, pass string // of registry_auth
	authAt     *node
	resources  dstackResources
}

// dstackName is the name of a task that has none; dstack makes one up by chance.
const dstackName = "dstack-task"

func parseDstack(data []byte, o Options) (job.Submission, error) {
	n, err := readTree(data)
	if err != nil {
		return job.Submission{}, err
	}
	d := &decoder{}
	if other := dstackOther(d, n); other {
		return job.Submission{}, d.problems()
	}
	t := &dstack{o: o}
	t.sub.Spec.Gbatch = &job.Gbatch{Source: string(Dstack), StopSignal: "INT", StopGrace: dstackStop}
	t.sub.Spec.Name = dstackName
	if env := n.given("env"); env != nil {
		t.readEnv(d, env) // first: other values may name them
	}
	if object(d, n, dstackFields, t) {
		t.applyImage(d, n)
		t.applyCommand(d, n)
		t.applyGang(d, n)
		t.resources.apply(d, n.given("resources"), &t.sub.Spec)
		if n.given("resources") == nil {
			d.note(n, fmt.Sprintf("names no resources: %d cores and %d GB of memory are asked for, and no GPU", dstackCPUs, dstackMemory))
		}
	}
	return d.finish(t.sub)
}

// dstackTypes are the types of dstack's documents, with what to do instead of
// those that are no tasks.
var dstackTypes = map[string]string{
	"task":            "a task",
	"dev-environment": "submit a task whose command stays, as sleep infinity, and open a shell in it with gexec",
	"service":         "gbatch runs jobs that end; a server can run as a task with ports, which gexec --forward reaches",
	"fleet":           "nodes are the site's: see ginfo",
	"volume":          "storage is the site's: mount one of its directories with volumes",
	"gateway":         "gbatch has no gateways: reach a port of a task with gexec --forward",
}

// dstackOther refuses what dstack can run or keep besides tasks.
func dstackOther(d *decoder, n *node) bool {
	kind := n.child("type")
	switch {
	case n.kind != objectKind:
		d.wrongKind(n, "an object")
	case kind == nil:
		d.missing(n, "type", `write "type: task"`)
	case kind.kind != stringKind || dstackTypes[kind.text] == "":
		d.problem(kind, fmt.Sprintf("must be task, is %s", quote(kind.text)), "")
	case kind.text != "task":
		d.problem(kind, fmt.Sprintf("is %s, and gbatch runs tasks", quote(kind.text)), dstackTypes[kind.text])
	default:
		return false
	}
	return true
}

const (
	cloudOnly  = "is not used: nodes are the site's own, they are not rented for a job and cost nothing by the hour"
	deprecated = "is not used: it is deprecated in dstack, too, and nodes here stay when a job ends"
	noFiles    = "gbatch uploads nothing: put the files into the site's storage and mount them with volumes, put them into the image, or fetch them in commands"
)

var dstackFields = []field[dstack]{
	{"type", func(*decoder, *node, *dstack) {}, true}, // see dstackOther
	{"name", readDstackName, false},
	{"nodes", readDstackNodes, false},
	{"groups", refuse[dstack]("submit each group as a job of its own, of which those that need others wait for them with gbatch.dependencies"), false},

	{"image", readDstackImage, false},
	{"python", readDstackPython, false},
	{"nvcc", func(d *decoder, n *node, t *dstack) { t.nvcc, _ = d.boolean(n) }, false},
	{"docker", refuseTrue("run each container as a job of its own, or use an image that needs no daemon to build or run others"), false},
	{"user", func(d *decoder, n *node, t *dstack) {
		t.sub.Spec.Request.Docker.User, _ = d.scalar(n)
		d.becomes("request.docker.user", n)
	}, false},
	{"privileged", func(d *decoder, n *node, t *dstack) {
		t.sub.Spec.Gbatch.Privileged, _ = d.boolean(n)
		d.becomes("gbatch.privileged", n)
	}, false},
	{"entrypoint", readDstackEntrypoint, false},
	{"commands", readDstackCommands, false},
	{"shell", readDstackShell, false},
	{"working_dir", readDstackWorkDir, false},
	{"home_dir", remark[dstack]("is not used: it is deprecated and has no effect in dstack, too"), false},
	{"setup", remark[dstack]("is not used: it is deprecated and has no effect in dstack, too"), false},
	{"registry_auth", readDstackAuth, false},
	{"env", func(*decoder, *node, *dstack) {}, false}, // was read before
	{"volumes", readDstackVolumes, false},
	{"ports", readDstackPorts, false},
	{"repos", refuseSome(noFiles), false},
	{"files", refuseSome(noFiles), false},
	{"single_branch", remark[dstack]("is not used: gbatch clones no repository"), false},
	{"ide", remark[dstack]("is not used: it is about development environments"), false},
	{"resources", func(d *decoder, n *node, t *dstack) { object(d, n, dstackResourceFields, &t.resources) }, false},

	{"backends", dstackFeature("backend"), false},
	{"regions", dstackFeature("region"), false},
	{"availability_zones", dstackFeature("zone"), false},
	{"instance_types", dstackFeature("instance-type"), false},
	{"fleets", dstackFeature("fleet"), false},
	{"instances", readDstackInstances, false},
	{"instance_name", readDstackInstances, false},
	{"reservation", readDstackReservation, false},
	{"backend_options", remark[dstack](cloudOnly), false},
	{"spot_policy", dstackWord(cloudOnly, "spot", "on-demand", "auto"), false},
	{"max_price", readDstackPrice, false},
	{"creation_policy", dstackWord(cloudOnly, "reuse", "reuse-or-create"), false},
	{"idle_duration", readDstackIdle, false},
	{"termination_policy", dstackWord(deprecated, "dont-destroy", "destroy-after-idle"), false},
	{"termination_idle_time", remark[dstack](deprecated), false},
	{"pool_name", remark[dstack](deprecated), false},

	{"priority", readDstackPriority, false},
	{"retry", readDstackRetry, false},
	{"retry_policy", refuse[dstack](`write "retry" with on_events and duration`), false},
	{"max_duration", readDstackMaxDuration, false},
	{"stop_duration", readDstackStopDuration, false},
	{"utilization_policy", readDstackUtilization, false},
	{"schedule", readDstackSchedule, false},
	{"startup_order", readDstackOrder, false},
	{"stop_criteria", readDstackStop, false},
	{"tags", readDstackTags, false},
}

// refuseTrue refuses true, and refuseSome a list that has something in it.
func refuseTrue(hint string) func(*decoder, *node, *dstack) {
	return func(d *decoder, n *node, _ *dstack) {
		if yes, ok := d.boolean(n); ok && yes {
			d.problem(n, "is not supported", hint)
		}
	}
}

func refuseSome(hint string) func(*decoder, *node, *dstack) {
	return func(d *decoder, n *node, _ *dstack) {
		if n.kind != arrayKind || len(n.kids) > 0 {
			d.problem(n, "is not supported", hint)
		}
	}
}

// dstackWord checks a word of a list and says why it changes nothing here.
func dstackWord(message string, words ...string) func(*decoder, *node, *dstack) {
	return func(d *decoder, n *node, _ *dstack) {
		if _, ok := d.oneOf(n, words...); ok {
			d.note(n, message)
		}
	}
}

// dstackFeature turns a list of places into features that the node has one of.
func dstackFeature(name string) func(*decoder, *node, *dstack) {
	return func(d *decoder, n *node, t *dstack) {
		var any []string
		for _, s := range d.strs(n) {
			any = append(any, name+"="+s)
		}
		if len(any) > 0 {
			addAnyFeature(d, n, t.sub.Spec.Gbatch, any)
		}
	}
}

var dstackNameForm = regexp.MustCompile(`^[a-z][a-z0-9-]{1,40}$`)

func readDstackName(d *decoder, n *node, t *dstack) {
	s, ok := d.str(n)
	if ok && !dstackNameForm.MatchString(s) {
		d.problem(n, fmt.Sprintf("is %s: want 2 to 41 lower-case letters, digits and -, the first a letter", quote(s)), "")
		return
	}
	t.sub.Spec.Name = s
	d.becomes("name", n)
}

func readDstackNodes(d *decoder, n *node, t *dstack) {
	if x, ok := d.integer(n, 1, 10_000); ok && x > 1 {
		t.sub.Spec.Gbatch.Nodes = x
	}
	d.becomes("gbatch.nodes", n)
}

func readDstackOrder(d *decoder, n *node, t *dstack) {
	if s, ok := d.oneOf(n, "any", job.MasterFirst, job.WorkersFirst); ok && s != "any" {
		t.sub.Spec.Gbatch.StartOrder = s
	}
}

func readDstackStop(d *decoder, n *node, t *dstack) {
	if s, ok := d.oneOf(n, "all-done", job.MasterDone); ok && s != "all-done" {
		t.sub.Spec.Gbatch.StopWhen = s
	}
}

// applyGang drops what is about several nodes from a task on one.
func (t *dstack) applyGang(d *decoder, n *node) {
	g := t.sub.Spec.Gbatch
	if g.Nodes > 1 {
		return
	}
	for _, key := range []string{"startup_order", "stop_criteria"} {
		if kid := n.given(key); kid != nil && (g.StartOrder != "" || g.StopWhen != "") {
			d.note(kid, "is not used: the task runs on one node")
		}
	}
	g.StartOrder, g.StopWhen = "", ""
}

func readDstackTags(d *decoder, n *node, t *dstack) {
	if n.kind != objectKind {
		d.wrongKind(n, "an object of names and values")
		return
	}
	labels := map[string]string{}
	for _, kid := range n.kids {
		if _, twice := labels[kid.key]; twice {
			d.problem(kid, "is given twice", "keep one of them")
		} else if s, ok := d.scalar(kid); ok {
			labels[kid.key] = s
			d.becomes(member("gbatch.labels", kid.key), kid)
		}
	}
	t.sub.Spec.Gbatch.Labels = labels
	d.becomes("gbatch.labels", n)
}

var uuidForm = regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)

func readDstackReservation(d *decoder, n *node, t *dstack) {
	s, ok := d.str(n)
	switch {
	case !ok:
	case uuidForm.MatchString(s):
		t.sub.Spec.Request.Scheduling.ReservationIDs = []string{s}
		d.becomes("request.scheduling.reservationIds", n)
	default:
		addAnyFeature(d, n, t.sub.Spec.Gbatch, []string{"reservation=" + s})
	}
}

const maxInstances = 100 // as native documents have it

// readDstackInstances reads names of nodes, or objects with one.
func readDstackInstances(d *decoder, n *node, t *dstack) {
	g := t.sub.Spec.Gbatch
	add := func(n *node) {
		s, ok := d.str(n)
		if ok && !slices.Contains(g.NodeNames, s) {
			d.becomes(fmt.Sprintf("gbatch.nodeNames[%d]", len(g.NodeNames)), n)
			g.NodeNames = append(g.NodeNames, s)
		}
	}
	name := func(d *decoder, n *node, _ *dstack) { add(n) }
	fields := []field[dstack]{
		{"name", name, false},
		{"hostname", name, false},
		{"fleet", refuse[dstack](`name the node: "hostname"`), false},
		{"instance", refuse[dstack](`name the node: "hostname"`), false},
	}
	if n.kind == stringKind {
		add(n)
		return
	}
	if len(n.kids) > maxInstances {
		d.problem(n, fmt.Sprintf("has %d entries, at most %d are allowed", len(n.kids), maxInstances), "")
		return
	}
	d.elements(n, func(n *node) {
		if n.kind == stringKind {
			add(n)
			return
		}
		object(d, n, fields, t)
	})
}
