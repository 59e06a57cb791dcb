package kubernetes

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/foreign"
	"gbatch/internal/job/sizes"
)

// readContainers reads the list: the job's own, and those that run beside it.
func readContainers(d *decoder, n *node, k *manifest) {
	if n.Kind == document.ArrayKind && len(n.Kids) == 0 {
		d.Problem(n, "has no container", "write one")
		return
	}
	own := ownOf(n)
	d.Elements(n, func(n *node) {
		if n == own {
			k.main, k.mainNode = newContainer(k), n
			document.Object(d, n, containerFields, k.main)
			return
		}
		c := k.apartFrom(fmt.Sprintf("gbatch.beside[%d].", len(k.mates)))
		document.Object(d, n, containerFields, c)
		k.mates, k.mateNodes = append(k.mates, c), append(k.mateNodes, n)
	})
}

// ownOf is the container that becomes the job's own: the first that asks for GPUs, as a job
// has those of one kind for one of its programs, else the first.
func ownOf(n *node) *node {
	if n.Kind != document.ArrayKind {
		return n
	}
	for _, kid := range n.Kids {
		r := kid.Given("resources")
		if r == nil {
			continue
		}
		for _, list := range []*node{r.Given("limits"), r.Given("requests"), r.Given("claims")} {
			if list != nil && (list.Key == "claims" || slices.ContainsFunc(list.Kids, func(a *node) bool { return strings.HasPrefix(a.Key, "nvidia.com/") && a.Text != "0" })) {
				return kid
			}
		}
	}
	return n.Kids[0]
}

// apartFrom is a container with a job of its own for what it says, which is native in
// another place.
func (k *manifest) apartFrom(prefix string) *container {
	scratch := *k
	scratch.spec = job.Spec{Gbatch: &job.Gbatch{}}
	scratch.prefix = prefix
	return newContainer(&scratch)
}

func newContainer(k *manifest) *container {
	return &container{manifest: k, requests: map[string]*node{}, limits: map[string]*node{}, values: map[string]string{}}
}

// container is the container: amounts are combined when all are read.
type container struct {
	*manifest
	called           string  // its name
	sidecar          bool    // an init container that goes on
	takes            amounts // of one that runs at the same time as the job's own
	command, args    []string
	ownUser          string // ids, where it says so itself
	ownGroup         string
	requests, limits map[string]*node
	expanded         int            // bytes that came of variables
	inCommand        bool           // a command is read, for which all variables are known
	reference        *regexp.Regexp // to a variable; nil until it is needed

	startup      *node // a probe
	claimNode    *node // claims of devices that it uses
	lockNode     *node // where it asks to lock memory
	env, envFrom *node
	names        []string          // of its variables, in order
	values       map[string]string // of these, as job.Expand reads them
	secret       map[string]bool   // variables whose values are secrets
	brought      map[string]bool   // those of them that no container before had
}

var containerFields = []field[container]{
	{"name", func(d *decoder, n *node, c *container) {
		c.called, _ = d.Str(n)
		if c.prefix != "" {
			d.Becomes(c.prefix+"name", n)
		}
	}, false},
	{"image", func(d *decoder, n *node, c *container) {
		d.Text(n, &c.spec.Request.Docker.Image, c.path("request.docker.image"))
	}, true},
	{"command", func(d *decoder, n *node, c *container) {
		c.command = d.Strs(n)
		d.Becomes(c.path("gbatch.entrypoint"), n)
	}, false},
	{"args", func(d *decoder, n *node, c *container) {
		c.args = d.Strs(n)
		d.Becomes(c.path("request.docker.command"), n)
	}, false},
	{"workingDir", func(d *decoder, n *node, c *container) {
		d.Text(n, &c.spec.Request.Docker.WorkingDir, c.path("request.docker.workingDir"))
	}, false},
	{"env", func(_ *decoder, n *node, c *container) { c.env = n }, false},
	{"resources", func(d *decoder, n *node, c *container) {
		amounts := func(to map[string]*node) func(*decoder, *node, *container) {
			return func(d *decoder, n *node, _ *container) {
				if n.Kind != document.ObjectKind {
					d.WrongKind(n, "an object")
				}
				for _, kid := range n.Kids {
					to[kid.Key] = kid
				}
			}
		}
		document.Object(d, n, []field[container]{{"requests", amounts(c.requests), false}, {"limits", amounts(c.limits), false},
			{"claims", func(_ *decoder, n *node, c *container) { c.claimNode = n }, false}}, c)
	}, false},
	{"volumeMounts", func(d *decoder, n *node, c *container) {
		d.Elements(n, func(n *node) { readMount(d, n, c.manifest) })
	}, false},
	{"securityContext", readSecurity, false},
	{"ports", foreign.Remark[container]("is not used: reach a port of the running job with gexec --forward, or map it with portMappings of a native job"), false},
	{"imagePullPolicy", foreign.Remark[container]("is not used: an image is fetched when the node does not have what its reference names"), false},
	{"terminationMessagePath", foreign.Remark[container]("is not used: glog shows what the program wrote"), false},
	{"terminationMessagePolicy", foreign.Remark[container]("is not used: glog shows what the program wrote"), false},
	{"stdin", foreign.Remark[container]("is not used: for a job with a terminal use gsubmit --interactive"), false},
	{"tty", foreign.Remark[container]("is not used: for a job with a terminal use gsubmit --interactive"), false},
	{"envFrom", func(_ *decoder, n *node, c *container) { c.envFrom = n }, false},
	{"livenessProbe", foreign.Remark[container](hangs), false},
	{"readinessProbe", foreign.Remark[container]("is not used: it says from when on a service sends requests, and there is none"), false},
	{"startupProbe", func(_ *decoder, n *node, c *container) { c.startup = n }, false},
	{"resizePolicy", foreign.Remark[container]("is not used: gqueue resize changes what a running job has"), false},
	{"lifecycle", readLifecycle, false},
	{"volumeDevices", refuse[container]("use volumeMounts"), false},
	{"restartPolicy", func(d *decoder, n *node, c *container) {
		if !strings.HasPrefix(c.prefix, "gbatch.before") {
			d.Problem(n, "is of one container, and only init containers have one here", "remove it: the pod's restartPolicy counts, and what is begun again whenever it ends can be an init container with restartPolicy Always")
			return
		}
		_, c.sidecar = d.OneOf(n, "Always")
		d.Becomes(c.path("gbatch.sidecar"), n)
	}, false},
}

const hangs = "is not used: nobody looks whether a program hangs; for one that may set activeDeadlineSeconds, or gbatch.idleGpu of a native job"

// combine decides what the container gets, and how its program is called.
func (c *container) combine(d *decoder, n *node) {
	r := &c.spec.Request.Resources
	if milli, ok := c.amount(d, "cpu", 1000); ok {
		if r.CPUs = int((milli + 999) / 1000); milli%1000 != 0 {
			d.Note(c.of("cpu"), fmt.Sprintf("is rounded up to %d: cores are not shared", r.CPUs))
		}
	} else {
		r.CPUs = 1
		d.Note(n, "asks for no cpu: one core")
	}
	if bytes, ok := c.amount(d, "memory", 1); ok {
		r.CPUMemoryGB = wholeGiB(bytes)
	} else {
		r.CPUMemoryGB = 4 * r.CPUs
		d.Note(n, fmt.Sprintf("asks for no memory: 4 GiB for each core, %d in all", r.CPUMemoryGB))
	}
	if gpus, ok := c.amount(d, "nvidia.com/gpu", 1); ok {
		r.GPUs = float64(gpus)
	}
	c.modelled(d)
	c.claimed(d)
	if bytes, ok := c.amount(d, "ephemeral-storage", 1); ok {
		c.spec.Gbatch.DiskGB = wholeGiB(bytes)
	}
	c.known(d)
}

// known tells of amounts of what is not known here.
func (c *container) known(d *decoder) {
	for _, of := range []map[string]*node{c.requests, c.limits} {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			switch v := of[name]; {
			case name == "cpu" || name == "memory" || name == "nvidia.com/gpu" || name == "ephemeral-storage" || gpuModel(name) != "":
			case name == "alpha.kubernetes.io/nvidia-gpu":
				d.Problem(v, "is a name of before Kubernetes 1.10", "write nvidia.com/gpu")
			case strings.HasPrefix(name, "rdma/") || name == "vpc.amazonaws.com/efa":
				c.rdmaNodes = append(c.rdmaNodes, v)
			case strings.HasPrefix(name, "nvidia.com/mig-") || strings.HasSuffix(name, ".shared"):
				d.Problem(v, "is a part of a GPU", "ask for nvidia.com/gpu: where the site has cut its GPUs into parts, each is one, and a nodeSelector nvidia.com/gpu.product names its model")
			case strings.HasPrefix(name, "google.com/tpu") || strings.HasPrefix(name, "amd.com/") || strings.HasPrefix(name, "habana.ai/"):
				d.Problem(v, "is a device that is not known here", "GPUs of NVIDIA are, nvidia.com/gpu: the program has to be one for these")
			case strings.HasPrefix(name, "hugepages-"):
				d.Problem(v, "is not supported", "huge pages are the node's")
			default:
				d.Problem(v, "is a resource that is not known here", "cpu, memory, ephemeral-storage and nvidia.com/gpu are; for others ask for nodes with a feature by nodeSelector")
			}
		}
	}
}

// gpuModel is the model that a resource of some clusters names, as nvidia.com/a100.
func gpuModel(resource string) string {
	model, ok := strings.CutPrefix(resource, "nvidia.com/")
	if !ok || model == "gpu" || strings.Contains(model, ".") || strings.HasPrefix(model, "mig-") || strings.Contains(model, "mem") {
		return ""
	}
	return strings.ReplaceAll(strings.ToUpper(model), "-", " ")
}

// modelled takes GPUs that are asked for by their model.
func (c *container) modelled(d *decoder) {
	r, found := &c.spec.Request.Resources, map[string]bool{}
	for _, of := range []map[string]*node{c.requests, c.limits} {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			model := gpuModel(name)
			if model == "" || found[name] {
				continue
			}
			found[name] = true
			gpus, ok := c.amount(d, name, 1)
			switch {
			case !ok || gpus == 0:
			case r.GPUs > 0:
				d.Problem(of[name], "are GPUs of another kind than the job has already, and a job has those of one", "ask for one of them")
			default:
				r.GPUs, r.GPUModel = float64(gpus), []string{"=" + model + " *"}
				d.Note(of[name], "is understood as GPUs of the model "+model)
			}
		}
	}
}

// of is where an amount is given: the limit, which is what may be used, or the
// request.
func (c *container) of(name string) *node {
	if n := c.limits[name]; n != nil && n.Kind != document.NullKind {
		return n
	}
	if n := c.requests[name]; n != nil && n.Kind != document.NullKind {
		return n
	}
	return nil
}

// amount reads a quantity in units of 1/scale.
func (c *container) amount(d *decoder, name string, scale float64) (int64, bool) {
	n := c.of(name)
	if n == nil {
		return 0, false
	}
	text, ok := d.Scalar(n)
	if !ok {
		return 0, false
	}
	x, err := sizes.Quantity(text)
	if err != nil || x*scale > 1<<53 {
		d.Problem(n, fmt.Sprintf("is %s, which is no amount", document.Quote(text)), "write a number, with m, k, M, G, T, Ki, Mi, Gi or Ti behind it")
		return 0, false
	}
	if other := c.requests[name]; other != nil && other != n && other.Text != n.Text {
		d.Note(n, "is what is reserved: a request that is lower than its limit is not used")
	}
	return int64(math.Ceil(x * scale)), true
}

// wholeGiB rounds bytes up, to one at least.
func wholeGiB(bytes int64) int { return max(1, int((bytes+(1<<30)-1)>>30)) }

func readSecurity(d *decoder, n *node, c *container) {
	document.Object(d, n, []field[container]{
		{"privileged", func(d *decoder, n *node, c *container) { d.Truth(n, &c.spec.Gbatch.Privileged, "gbatch.privileged") }, false},
		{"runAsUser", func(d *decoder, n *node, c *container) {
			readID(d, n, &c.ownUser, c.path("request.docker.user"))
		}, false},
		{"runAsGroup", func(d *decoder, n *node, c *container) {
			readID(d, n, &c.ownGroup, c.path("request.docker.user"))
		}, false},
		{"runAsNonRoot", foreign.Remark[container]("is not checked: the container runs as its image's user, or as runAsUser"), false},
		{"allowPrivilegeEscalation", foreign.Remark[container]("is not used: only root in the container can become somebody else"), false},
		{"readOnlyRootFilesystem", foreign.Remark[container]("is not used: the container's root is its own and gone with it"), false},
		{"capabilities", readCapabilities, false},
		{"seccompProfile", foreign.Remark[container](ownProfile), false},
		{"seLinuxOptions", foreign.Remark[container](ownProfile), false},
		{"appArmorProfile", foreign.Remark[container](ownProfile), false},
	}, c)
}

// readCapabilities takes those that are added and can be asked for. What every
// container has need not be, and to have fewer is not offered.
func readCapabilities(d *decoder, n *node, c *container) {
	if n.Given("drop") != nil {
		d.Note(n, "is used for what it adds: a container has few capabilities here, and always the same")
	}
	add := n.Given("add")
	if add == nil {
		return
	}
	for _, kid := range add.Kids {
		name := strings.TrimPrefix(strings.ToUpper(kid.Text), "CAP_")
		switch wrong := job.CheckCapability(name); {
		case slices.Contains(job.UsualCapabilities, job.Capability(name)):
			d.Note(kid, "is what every container has")
		case kid.Kind != document.StringKind:
			d.WrongKind(kid, "the name of a capability")
		case name == "IPC_LOCK":
			c.lockNode = kid
		case wrong != "":
			d.Problem(kid, wrong, "where the site allows it, use privileged")
		default:
			c.spec.Gbatch.Capabilities = append(c.spec.Gbatch.Capabilities, job.Capability(name))
			d.Becomes("gbatch.capabilities", kid)
		}
	}
}

// locks decides what asking for locked memory and for devices of fast networks comes to, when
// it is known whether there are GPUs.
func (c *container) locks(d *decoder) {
	for _, n := range c.rdmaNodes {
		if c.spec.Request.Resources.GPUs > 0 {
			d.Note(n, "is not asked for: containers with GPUs have what devices of fast networks their nodes give them, with hostNetwork")
		} else {
			d.Problem(n, "is a device of a fast network, which containers with GPUs have on nodes that give it to them", "remove it if the program goes on without")
		}
	}
	c.rdmaNodes = nil
	switch {
	case c.lockNode == nil:
	case c.spec.Request.Resources.GPUs > 0:
		d.Note(c.lockNode, "is not needed: jobs with GPUs may lock memory")
	default:
		d.Problem(c.lockNode, "lets a program lock memory, which jobs with GPUs may do and others may not", "remove it if the program goes on without; where the site allows it, use privileged")
	}
}
