package kubernetes

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job/importer/foreign"
	"gbatch/internal/job/importer/kubernetes/products"
	"gbatch/internal/job/sizes"
)

// What a claim of dynamic resource allocation asks for is taken where it is whole GPUs
// of one kind: so many, of a model, with so much memory. A claim is made for each pod by
// its template; one that is made before may be shared by pods, which GPUs of a job are
// not.

// claim is a template of claims, or a claim, and what it asks for.
type claim struct {
	name    string
	at      *node // the object
	shared  bool  // it is a claim, which more than one pod may use
	devices []devices
}

// devices are what one request of a claim asks for.
type devices struct {
	name      string
	class     string
	count     int
	models    []string
	memoryGiB int64
	bad       bool // told already
}

// podClaim is an entry of a pod's resourceClaims.
type podClaim struct {
	name, template, claim string
	at                    *node
}

// maxClaims bounds the claims of a pod and of a container, and maxRequests what one
// asks for, as Kubernetes does.
const maxClaims, maxRequests = 100, 32

// few says that a list is short enough to be read.
func few(d *decoder, n *node, most int) bool {
	if n.Kind == document.ArrayKind && len(n.Kids) > most {
		d.Problem(n, fmt.Sprintf("has %d entries, at most %d are supported", len(n.Kids), most), "keep fewer of them")
		return false
	}
	return true
}

const wholeGPUs = "ask for whole GPUs, by deviceClassName gpu.nvidia.com and count, or by nvidia.com/gpu in the container's resources"

func claimFields(shared bool) []field[claim] {
	nothing := func(*decoder, *node, *claim) {}
	spec := func(d *decoder, n *node, c *claim) {
		document.Object(d, n, []field[claim]{{"devices", func(d *decoder, n *node, c *claim) { document.Object(d, n, deviceFields, c) }, true}}, c)
	}
	own := spec
	if !shared {
		own = func(d *decoder, n *node, c *claim) {
			document.Object(d, n, []field[claim]{{"spec", spec, true}, {"metadata", nothing, false}}, c)
		}
	}
	return []field[claim]{
		{"apiVersion", func(d *decoder, n *node, _ *claim) {
			d.OneOf(n, "resource.k8s.io/v1", "resource.k8s.io/v1beta2", "resource.k8s.io/v1beta1", "resource.k8s.io/v1alpha3")
		}, true},
		{"kind", nothing, true},
		{"metadata", func(d *decoder, n *node, c *claim) {
			if x := n.Given("name"); x != nil {
				c.name, _ = d.Str(x)
			} else {
				d.Missing(n, "name", "")
			}
		}, true},
		{"spec", own, true},
	}
}

var deviceFields = []field[claim]{
	{"requests", func(d *decoder, n *node, c *claim) {
		if !few(d, n, maxRequests) {
			return
		}
		d.Elements(n, func(n *node) {
			one := devices{count: 1}
			before := d.Count()
			document.Object(d, n, requestFields(true), &one)
			one.bad = d.Count() > before
			c.devices = append(c.devices, one)
		})
	}, true},
	{"constraints", foreign.Refuse[claim](wholeGPUs), false},
	{"config", foreign.Refuse[claim](wholeGPUs + ": they are not shared"), false},
}

// requestFields are those of a request; newer versions have all but its name one level
// deeper.
func requestFields(outer bool) []field[devices] {
	list := []field[devices]{
		{"deviceClassName", func(d *decoder, n *node, r *devices) { r.class, _ = d.Str(n) }, false},
		{"count", func(d *decoder, n *node, r *devices) { r.count, _ = d.Integer(n, 1, 1024) }, false},
		{"allocationMode", func(d *decoder, n *node, _ *devices) {
			if word, _ := d.OneOf(n, "ExactCount", "All"); word == "All" {
				d.Problem(n, "asks for all devices of a node", "say how many: count")
			}
		}, false},
		{"selectors", func(d *decoder, n *node, r *devices) {
			d.Elements(n, func(n *node) {
				document.Object(d, n, []field[devices]{{"cel", func(d *decoder, n *node, r *devices) {
					document.Object(d, n, []field[devices]{{"expression", readSelection, true}}, r)
				}, true}}, r)
			})
		}, false},
		{"tolerations", foreign.Remark[devices]("is not used: GPUs have no taints here"), false},
		{"adminAccess", foreign.Refuse[devices]("GPUs of others are not to be had"), false},
		{"capacity", foreign.Refuse[devices](wholeGPUs + "; for a share of one write a native job with request.resources.gpus below 1"), false},
	}
	if outer {
		list = append(list, field[devices]{"name", func(d *decoder, n *node, r *devices) { r.name, _ = d.Str(n) }, true},
			field[devices]{"exactly", func(d *decoder, n *node, r *devices) { document.Object(d, n, requestFields(false), r) }, false},
			field[devices]{"firstAvailable", foreign.Refuse[devices]("name one kind of devices, by exactly"), false})
	}
	return list
}

// patterns are what a selector may say, each a part of a conjunction. A device is
// called device.
type patterns struct{ conjunction, ofDriver, ofType, ofProduct, hasProduct, ofMemory *regexp.Regexp }

// newPatterns compiles them. That is dear beside the start of a command, so it is
// done where a selector is read.
func newPatterns() *patterns {
	return &patterns{
		conjunction: regexp.MustCompile(`\s*&&\s*`),
		ofDriver:    regexp.MustCompile(`^device\.driver\s*==\s*["']([^"']+)["']$`),
		ofType:      regexp.MustCompile(`^device\.attributes\[["'][^"']+["']\]\.type\s*==\s*["']([^"']+)["']$`),
		ofProduct:   regexp.MustCompile(`^device\.attributes\[["'][^"']+["']\]\.productName\s*==\s*["']([^"']+)["']$`),
		hasProduct:  regexp.MustCompile(`^device\.attributes\[["'][^"']+["']\]\.productName(?:\.lowerAscii\(\))?\.(?:contains\(["']([\w .-]+)["']\)|matches\(["']\^?\.\*([\w -]+)\.\*\$?["']\))$`),
		ofMemory:    regexp.MustCompile(`^device\.capacity\[["'][^"']+["']\]\.memory\.(?:compareTo\(quantity\(["']([^"']+)["']\)\)\s*(>=|>)\s*0|(isGreaterThan)\(quantity\(["']([^"']+)["']\)\))$`),
	}
}

func readSelection(d *decoder, n *node, r *devices) {
	text, ok := d.Str(n)
	if !ok {
		return
	}
	known := newPatterns()
	for _, part := range known.conjunction.Split(strings.TrimSpace(text), -1) {
		if !r.selects(known, strings.Join(strings.Fields(part), " ")) {
			d.Problem(n, fmt.Sprintf("selects by %s, which is not understood", document.Quote(part)),
				"known are device.driver, and of its attributes type, productName (==, contains, matches) and memory (compareTo(quantity(...)) >= 0), with && between them; or name the GPU by nodeSelector nvidia.com/gpu.product")
		}
	}
}

// selects takes in one part of a selector; false: it is not understood.
func (r *devices) selects(known *patterns, part string) bool {
	if m := known.ofDriver.FindStringSubmatch(part); m != nil {
		return knownClass(m[1])
	}
	if m := known.ofType.FindStringSubmatch(part); m != nil {
		return m[1] == "gpu"
	}
	if m := known.ofProduct.FindStringSubmatch(part); m != nil {
		first := len(r.models) == 0
		r.models = products.OfProduct(m[1])
		return first
	}
	if m := known.hasProduct.FindStringSubmatch(part); m != nil {
		r.models = append(r.models, strings.ToUpper(m[1]+m[2]))
		return len(r.models) == 1
	}
	m := known.ofMemory.FindStringSubmatch(part)
	if m == nil {
		return false
	}
	bytes, err := sizes.Quantity(m[1] + m[4])
	if err != nil {
		return false
	}
	least := wholeGiB(int64(bytes))
	if (m[2] == ">" || m[3] != "") && float64(least<<30) == bytes {
		least++ // more than that
	}
	r.memoryGiB = max(r.memoryGiB, int64(least))
	return true
}

// knownClass says whether devices of a class, or of a driver, are GPUs of NVIDIA. The
// class of the documentation's example stands for any GPU.
func knownClass(name string) bool { return name == "gpu.nvidia.com" || name == "gpu.example.com" }

// takeClaim reads a claim, or a template of claims, that lies beside the job: true, it
// is one.
func (k *manifest) takeClaim(d *decoder, n *node, kind string) bool {
	if kind != "ResourceClaimTemplate" && kind != "ResourceClaim" {
		return false
	}
	c := &claim{at: n, shared: kind == "ResourceClaim"}
	if document.Object(d, n, claimFields(c.shared), c) && c.name != "" {
		key := kind + " " + c.name
		if k.claims[key] != nil {
			d.Problem(n, fmt.Sprintf("is the second %s %s", kind, document.Quote(c.name)), "keep one of them")
		}
		k.claims[key] = c
	}
	return true
}

var podClaimFields = []field[podClaim]{
	{"name", func(d *decoder, n *node, c *podClaim) { c.name, _ = d.Str(n) }, true},
	{"resourceClaimTemplateName", func(d *decoder, n *node, c *podClaim) { c.template, _ = d.Str(n) }, false},
	{"resourceClaimName", func(d *decoder, n *node, c *podClaim) { c.claim, _ = d.Str(n) }, false},
	{"source", func(d *decoder, n *node, c *podClaim) { // of before Kubernetes 1.31
		document.Object(d, n, []field[podClaim]{
			{"resourceClaimTemplateName", func(d *decoder, n *node, c *podClaim) { c.template, _ = d.Str(n) }, false},
			{"resourceClaimName", func(d *decoder, n *node, c *podClaim) { c.claim, _ = d.Str(n) }, false},
		}, c)
	}, false},
}

func readPodClaims(d *decoder, n *node, k *manifest) {
	if !few(d, n, maxClaims) {
		return
	}
	d.Elements(n, func(n *node) {
		c := podClaim{at: n}
		if document.Object(d, n, podClaimFields, &c) {
			k.podClaims = append(k.podClaims, c)
		}
	})
}

// claimed gives a container the GPUs of the claims that it uses.
func (c *container) claimed(d *decoder) {
	if c.claimNode == nil || !few(d, c.claimNode, maxClaims) {
		return
	}
	d.Elements(c.claimNode, func(n *node) {
		name, _ := d.Str(orNull(n.Given("name")))
		only := ""
		if x := n.Given("request"); x != nil {
			only, _ = d.Str(x)
		}
		at := slices.IndexFunc(c.podClaims, func(p podClaim) bool { return p.name == name })
		if at < 0 {
			d.Problem(n, fmt.Sprintf("uses the claim %s, which is not in resourceClaims", document.Quote(name)), "name it there")
			return
		}
		p := c.podClaims[at]
		key, word := "ResourceClaimTemplate "+p.template, p.template
		if p.template == "" {
			key, word = "ResourceClaim "+p.claim, p.claim
		}
		found := c.claims[key]
		switch {
		case found == nil:
			d.Problem(p.at, fmt.Sprintf("names the claim %s, which is not in the file", document.Quote(word)),
				"put its manifest into the file, behind a line ---, or give its file: gsubmit --with FILE; or ask for nvidia.com/gpu in the container's resources")
			return
		case found.shared && c.severalPods():
			d.Problem(p.at, "names a claim that all pods share, and tasks have GPUs of their own", "make it a ResourceClaimTemplate, of which each pod has a claim of its own")
			return
		}
		for _, r := range found.devices {
			if !r.bad && (only == "" || only == r.name) {
				c.takeDevices(d, n, r)
			}
		}
	})
}

func (k *manifest) severalPods() bool {
	return k.ofPods != nil || k.completions != nil && *k.completions > 1 || k.parallelism != nil && *k.parallelism > 1
}

func (c *container) takeDevices(d *decoder, n *node, r devices) {
	res := &c.spec.Request.Resources
	switch {
	case !knownClass(r.class):
		d.Problem(n, fmt.Sprintf("asks for devices of the class %s, which are not known here", document.Quote(r.class)), wholeGPUs)
		return
	case res.GPUs > 0 && !slices.Equal(res.GPUModel, r.models) || res.GPUs > 0 && int64(res.GPUMemoryGB) != r.memoryGiB:
		d.Problem(n, "asks for GPUs of another kind than the job has already, and a job has those of one", "ask for one of them")
		return
	}
	res.GPUs += float64(r.count)
	res.GPUModel, res.GPUMemoryGB = r.models, int(r.memoryGiB)
	d.Becomes(c.path("request.resources.gpus"), n)
	text := "is understood as " + strconv.Itoa(r.count) + " GPU"
	if r.count > 1 {
		text += "s"
	}
	if len(r.models) > 0 {
		text += " of the model " + products.Bare(r.models[0])
	}
	if r.memoryGiB > 0 {
		text += fmt.Sprintf(" with at least %d GiB", r.memoryGiB)
	}
	d.Note(n, text)
}
