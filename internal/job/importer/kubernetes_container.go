package importer

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"gbatch/internal/job"
)

// kubeContainers reads the list, which must have one container.
func kubeContainers(d *decoder, n *node, k *kubeJob) {
	if n.kind == arrayKind && len(n.kids) != 1 {
		d.problem(n, fmt.Sprintf("has %d containers, and a job has one", len(n.kids)), "put all programs into one image, or submit several jobs")
		return
	}
	d.elements(n, func(n *node) {
		c := &kubeContainer{kubeJob: k, requests: map[string]*node{}, limits: map[string]*node{}}
		if object(d, n, kubeContainerFields, c) {
			c.settle(d, n)
		}
	})
}

// kubeContainer is the container: amounts are settled when all are read.
type kubeContainer struct {
	*kubeJob
	command, args    []string
	requests, limits map[string]*node
}

var kubeContainerFields = []field[kubeContainer]{
	{"name", func(d *decoder, n *node, _ *kubeContainer) { d.str(n) }, false},
	{"image", func(d *decoder, n *node, c *kubeContainer) {
		c.spec.Request.Docker.Image, _ = d.str(n)
		d.becomes("request.docker.image", n)
	}, true},
	{"command", func(d *decoder, n *node, c *kubeContainer) {
		c.command = d.strs(n)
		d.becomes("gbatch.entrypoint", n)
	}, false},
	{"args", func(d *decoder, n *node, c *kubeContainer) {
		c.args = d.strs(n)
		d.becomes("request.docker.command", n)
	}, false},
	{"workingDir", func(d *decoder, n *node, c *kubeContainer) {
		c.spec.Request.Docker.WorkingDir, _ = d.str(n)
		d.becomes("request.docker.workingDir", n)
	}, false},
	{"env", kubeEnv, false},
	{"resources", func(d *decoder, n *node, c *kubeContainer) {
		amounts := func(to map[string]*node) func(*decoder, *node, *kubeContainer) {
			return func(d *decoder, n *node, _ *kubeContainer) {
				if n.kind != objectKind {
					d.wrongKind(n, "an object")
				}
				for _, kid := range n.kids {
					to[kid.key] = kid
				}
			}
		}
		object(d, n, []field[kubeContainer]{{"requests", amounts(c.requests), false}, {"limits", amounts(c.limits), false},
			{"claims", refuse[kubeContainer]("ask for nvidia.com/gpu"), false}}, c)
	}, false},
	{"volumeMounts", func(d *decoder, n *node, c *kubeContainer) {
		d.elements(n, func(n *node) { kubeMount(d, n, c.kubeJob) })
	}, false},
	{"securityContext", kubeSecurity, false},
	{"ports", remark[kubeContainer]("is not used: reach a port of the running job with gexec --forward, or map it with portMappings of a native job"), false},
	{"imagePullPolicy", remark[kubeContainer]("is not used: an image is fetched when the node does not have what its reference names"), false},
	{"terminationMessagePath", remark[kubeContainer]("is not used: glog shows what the program wrote"), false},
	{"terminationMessagePolicy", remark[kubeContainer]("is not used: glog shows what the program wrote"), false},
	{"stdin", remark[kubeContainer]("is not used: for a job with a terminal use gsubmit --interactive"), false},
	{"tty", remark[kubeContainer]("is not used: for a job with a terminal use gsubmit --interactive"), false},
	{"envFrom", refuse[kubeContainer]("name the variables in env"), false},
	{"livenessProbe", refuse[kubeContainer]("a batch job runs until it ends; for one that hangs set activeDeadlineSeconds"), false},
	{"readinessProbe", refuse[kubeContainer]("a batch job serves nobody"), false},
	{"startupProbe", refuse[kubeContainer]("a batch job serves nobody"), false},
	{"lifecycle", refuse[kubeContainer]("handle SIGTERM in the program"), false},
	{"volumeDevices", refuse[kubeContainer]("use volumeMounts"), false},
	{"restartPolicy", refuse[kubeContainer]("a job has one container"), false},
}

// settle decides what the container gets, and how its program is called.
func (c *kubeContainer) settle(d *decoder, n *node) {
	r := &c.spec.Request.Resources
	if milli, ok := c.amount(d, "cpu", 1000); ok {
		if r.CPUs = int((milli + 999) / 1000); milli%1000 != 0 {
			d.note(c.of("cpu"), fmt.Sprintf("is rounded up to %d: cores are not shared", r.CPUs))
		}
	} else {
		r.CPUs = 1
		d.note(n, "asks for no cpu: one core")
	}
	if bytes, ok := c.amount(d, "memory", 1); ok {
		r.CPUMemoryGB = wholeGiB(bytes)
	} else {
		r.CPUMemoryGB = 4 * r.CPUs
		d.note(n, fmt.Sprintf("asks for no memory: 4 GiB for each core, %d in all", r.CPUMemoryGB))
	}
	if gpus, ok := c.amount(d, "nvidia.com/gpu", 1); ok {
		r.GPUs = float64(gpus)
	}
	if bytes, ok := c.amount(d, "ephemeral-storage", 1); ok {
		c.spec.Gbatch.DiskGB = wholeGiB(bytes)
	}
	for _, of := range []map[string]*node{c.requests, c.limits} {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			switch v := of[name]; {
			case name == "cpu" || name == "memory" || name == "nvidia.com/gpu" || name == "ephemeral-storage":
			case strings.HasPrefix(name, "hugepages-"):
				d.problem(v, "is not supported", "huge pages are the node's")
			default:
				d.problem(v, "is a resource that is not known here", "cpu, memory, ephemeral-storage and nvidia.com/gpu are; for others ask for nodes with a feature by nodeSelector")
			}
		}
	}
	if g := c.spec.Gbatch; len(c.command) > 0 {
		g.Entrypoint = kubeExpand(c.command, c.spec.Request.Docker.Environment)
	}
	if len(c.args) > 0 {
		c.spec.Request.Docker.Command = job.Command{Argv: kubeExpand(c.args, c.spec.Request.Docker.Environment)}
	}
}

// of is where an amount is given: the limit, which is what may be used, or the
// request.
func (c *kubeContainer) of(name string) *node {
	if n := c.limits[name]; n != nil && n.kind != nullKind {
		return n
	}
	if n := c.requests[name]; n != nil && n.kind != nullKind {
		return n
	}
	return nil
}

// amount reads a quantity in units of 1/scale.
func (c *kubeContainer) amount(d *decoder, name string, scale float64) (int64, bool) {
	n := c.of(name)
	if n == nil {
		return 0, false
	}
	text, ok := d.scalar(n)
	if !ok {
		return 0, false
	}
	x, err := kubeQuantity(text)
	if err != nil || x*scale > 1<<53 {
		d.problem(n, fmt.Sprintf("is %s, which is no amount", quote(text)), "write a number, with m, k, M, G, T, Ki, Mi, Gi or Ti behind it")
		return 0, false
	}
	if other := c.requests[name]; other != nil && other != n && other.text != n.text {
		d.note(n, "is what is reserved: a request that is lower than its limit is not used")
	}
	return int64(math.Ceil(x * scale)), true
}

// wholeGiB rounds bytes up, to one at least.
func wholeGiB(bytes int64) int { return max(1, int((bytes+(1<<30)-1)>>30)) }

var kubeReference = regexp.MustCompile(`\$\$|\$\([A-Za-z_.-][A-Za-z0-9_.-]*\)`)

// kubeExpand replaces $(NAME) by the container's own variables, as Kubernetes does;
// $$ is a $, and an unknown name stays.
func kubeExpand(words []string, env map[string]string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = kubeReference.ReplaceAllStringFunc(w, func(m string) string {
			if m == "$$" {
				return "$"
			}
			if v, ok := env[m[2:len(m)-1]]; ok {
				return v
			}
			return m
		})
	}
	return out
}

func kubeSecurity(d *decoder, n *node, c *kubeContainer) {
	object(d, n, []field[kubeContainer]{
		{"privileged", func(d *decoder, n *node, c *kubeContainer) {
			c.spec.Gbatch.Privileged, _ = d.boolean(n)
			d.becomes("gbatch.privileged", n)
		}, false},
		{"runAsUser", func(d *decoder, n *node, c *kubeContainer) {
			kubeID(func(k *kubeJob) *string { return &k.runAs })(d, n, c.kubeJob)
		}, false},
		{"runAsGroup", func(d *decoder, n *node, c *kubeContainer) {
			kubeID(func(k *kubeJob) *string { return &k.runAsGroup })(d, n, c.kubeJob)
		}, false},
		{"runAsNonRoot", remark[kubeContainer]("is not checked: the container runs as its image's user, or as runAsUser"), false},
		{"allowPrivilegeEscalation", remark[kubeContainer]("is not used: only root in the container can become somebody else"), false},
		{"readOnlyRootFilesystem", remark[kubeContainer]("is not used: the container's root is its own and gone with it"), false},
		{"capabilities", func(d *decoder, n *node, c *kubeContainer) {
			if add := n.given("add"); add != nil && len(add.kids) > 0 {
				d.problem(add, "is not supported", "capabilities are bounded; where the site allows it, use privileged")
				return
			}
			d.note(n, "is not used: a container has few capabilities here")
		}, false},
		{"seccompProfile", remark[kubeContainer](ownProfile), false},
		{"seLinuxOptions", remark[kubeContainer](ownProfile), false},
		{"appArmorProfile", remark[kubeContainer](ownProfile), false},
	}, c)
}
