package kubernetes

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/foreign"
	"gbatch/internal/job/importer/kubernetes/names"
	"gbatch/internal/job/sizes"
)

// variable is one variable of a container.
type variable struct {
	name, value string
	from        *node
}

var variableFields = []field[variable]{
	{"name", func(d *decoder, n *node, v *variable) { v.name, _ = d.Str(n) }, true},
	{"value", func(d *decoder, n *node, v *variable) { v.value, _ = d.Scalar(n) }, false},
	{"valueFrom", func(d *decoder, n *node, v *variable) { v.from = n }, false},
}

// variables reads what the container's program finds in its environment: whole maps
// and secrets first, over which those that are named win, as in Kubernetes.
func (c *container) variables(d *decoder) {
	if c.envFrom != nil {
		d.Elements(c.envFrom, func(n *node) { c.takeAll(d, n) })
	}
	if c.env == nil {
		return
	}
	seen, told := map[string]*node{}, map[string]bool{} // where a variable's value was from, nil: it was written there
	d.Elements(c.env, func(n *node) {
		var v variable
		if !document.Object(d, n, variableFields, &v) || v.name == "" {
			return
		}
		if before, had := seen[v.name]; had {
			if ofSecret(before) || ofSecret(v.from) { // a secret's value is no variable of the file, over which another could win
				d.Problem(n, fmt.Sprintf("sets %s a second time, and one of them is a secret's", document.Quote(v.name)), "keep one of them")
				return
			}
			if !told[v.name] {
				d.Note(n, fmt.Sprintf("sets %s a second time: the last one counts", document.Quote(v.name)))
			}
			told[v.name] = true
		}
		seen[v.name] = v.from
		d.Becomes(document.Member(c.path("request.docker.environment"), v.name), n)
		switch {
		case v.from != nil:
			c.valueFrom(d, v)
		case foreign.IsTaskVariable(v.name):
			d.Problem(n, fmt.Sprintf("sets %s, which is set for every task", v.name), "remove it")
		default:
			c.set(v.name, c.template(d, n, v.value))
		}
	})
}

// ofSecret says that a variable's value is one of a secret.
func ofSecret(from *node) bool { return from != nil && from.Given("secretKeyRef") != nil }

// set gives a variable a value, as job.Expand reads it.
func (c *container) set(name, template string) {
	if _, had := c.values[name]; !had {
		c.names = append(c.names, name)
	}
	c.values[name] = template
	delete(c.secret, name)
	if g := c.spec.Gbatch; c.brought[name] { // else the program would have the secret's value
		delete(c.brought, name)
		delete(c.secrets, name)
		g.Secrets = slices.DeleteFunc(slices.Clone(g.Secrets), func(s job.Secret) bool { return s.Name == name })
	}
}

// clashes tells of variables that are secrets of other containers: all programs of a job
// have its secrets.
func (k *manifest) clashes(d *decoder) {
	look := func(c *container, n *node) {
		for _, s := range k.spec.Gbatch.Secrets {
			if _, set := c.values[s.Name]; set {
				d.Problem(n, fmt.Sprintf("sets %s, which is a secret's in another container, and all programs of a job have its secrets", document.Quote(s.Name)), "give one of the variables another name")
			}
		}
	}
	look(k.main, k.mainNode)
	k.each(func(_ *job.Before, c *container, n *node) { look(c, n) })
}

// takeAll reads an entry of envFrom.
func (c *container) takeAll(d *decoder, n *node) {
	prefix := ""
	if p := n.Given("prefix"); p != nil {
		prefix, _ = d.Str(p)
	}
	for _, from := range []struct {
		key, kind string
		have      map[string]*keys
	}{{"configMapRef", "ConfigMap", c.beside.maps}, {"secretRef", "Secret", c.beside.secrets}} {
		ref := n.Given(from.key)
		if ref == nil {
			continue
		}
		found := c.object(d, ref, from.kind, from.have)
		if found == nil {
			continue
		}
		for _, key := range found.names {
			if !isVariable(prefix + key) {
				d.Note(ref, fmt.Sprintf("has %s, which is no name of a variable and left out", document.Quote(prefix+key)))
				continue
			}
			if from.kind == "Secret" {
				c.takeSecret(d, ref, prefix+key, found.values[key])
			} else {
				c.set(prefix+key, literal(found.values[key]))
			}
		}
	}
}

// isVariable says whether a text can be the name of a variable.
func isVariable(s string) bool {
	for i, c := range []byte(s) {
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// object finds a config map or secret that is named; nil: it is not there, which is
// told unless it may be.
func (k *manifest) object(d *decoder, ref *node, kind string, have map[string]*keys) *keys {
	name := ""
	if x := ref.Given("name"); x != nil {
		name, _ = d.Str(x)
	}
	if found := have[name]; found != nil {
		return found
	}
	if x := ref.Given("optional"); x != nil {
		if on, _ := d.Boolean(x); on {
			return nil
		}
	}
	d.Problem(ref, fmt.Sprintf("names the %s %s, which is not in the file", kind, document.Quote(name)),
		"put its manifest into the file, behind a line ---, or give its file: gsubmit --with FILE")
	return nil
}

// takeSecret makes a secret of the variable's name.
func (c *container) takeSecret(d *decoder, n *node, name, value string) {
	if wrong := job.SecretName(name); wrong != "" {
		d.Problem(n, "has a key that cannot be a variable: "+wrong, "take the others by name, with env and secretKeyRef")
		return
	}
	g := c.spec.Gbatch
	if !slices.ContainsFunc(g.Secrets, func(s job.Secret) bool { return s.Name == name }) {
		g.Secrets = append(g.Secrets, job.Secret{Name: name})
		d.Becomes("gbatch.secrets", n)
		if c.brought == nil {
			c.brought = map[string]bool{}
		}
		c.brought[name] = true
	}
	if old, had := c.secrets[name]; had && value != "" && old != value {
		d.Problem(n, fmt.Sprintf("gives %s another value than a container before", document.Quote(name)), "give the variables of the containers names of their own")
		return
	}
	if value != "" {
		if wrong := job.SecretValue(value); wrong != "" {
			d.Problem(n, "has a value that "+wrong, "")
			return
		}
		foreign.Set(&c.secrets, name, value)
	}
	if c.secret == nil {
		c.secret = map[string]bool{}
	}
	c.secret[name] = true
	if _, had := c.values[name]; had {
		delete(c.values, name)
		c.names = slices.DeleteFunc(c.names, func(s string) bool { return s == name })
	}
}

func (c *container) valueFrom(d *decoder, v variable) {
	switch {
	case v.from.Given("secretKeyRef") != nil:
		c.fromSecret(d, v, v.from.Given("secretKeyRef"))
	case v.from.Given("configMapKeyRef") != nil:
		ref := v.from.Given("configMapKeyRef")
		if found := c.object(d, ref, "ConfigMap", c.beside.maps); found != nil {
			if value, ok := found.key(d, ref); ok {
				c.set(v.name, literal(value))
			}
		}
	case v.from.Given("fieldRef") != nil:
		path, _ := d.Str(orNull(v.from.Given("fieldRef").Given("fieldPath")))
		if value, ok := c.podField(d, v.from, path); ok && !(foreign.IsTaskVariable(v.name) && value == "$("+v.name+")") {
			c.set(v.name, value)
		}
	case v.from.Given("resourceFieldRef") != nil:
		if value, ok := c.resourceField(d, v.from.Given("resourceFieldRef")); ok {
			c.set(v.name, value)
		}
	default:
		d.Problem(v.from, "is not supported", "write the value, or make it a secret")
	}
}

// fromSecret takes a key of a secret of the file; of another one the value comes with
// the submission, under the variable's name.
func (c *container) fromSecret(d *decoder, v variable, ref *node) {
	name := ""
	if x := ref.Given("name"); x != nil {
		name, _ = d.Str(x)
	}
	found := c.beside.secrets[name]
	if found == nil {
		c.takeSecret(d, v.from, v.name, "")
		d.Note(v.from, fmt.Sprintf("is a secret whose value comes with the job: gsubmit --secret %s", v.name))
		return
	}
	if value, ok := found.key(d, ref); ok {
		c.takeSecret(d, v.from, v.name, value)
	}
}

// key is the entry that a reference names.
func (k *keys) key(d *decoder, ref *node) (string, bool) {
	name := ""
	if x := ref.Given("key"); x != nil {
		name, _ = d.Str(x)
	} else {
		d.Missing(ref, "key", "")
		return "", false
	}
	value, ok := k.values[name]
	if x := ref.Given("optional"); !ok && x != nil {
		if on, _ := d.Boolean(x); on {
			return "", false
		}
	}
	if !ok {
		d.Problem(ref, fmt.Sprintf("names the key %s, which is not there", document.Quote(name)), "its keys are "+strings.Join(k.names, ", "))
	}
	return value, ok
}

const indexField = "batch.kubernetes.io/job-completion-index"

// podField is what the downward API says of a pod.
func (c *container) podField(d *decoder, n *node, path string) (string, bool) {
	dynamic := func(template string) (string, bool) {
		c.runsDynamic = true
		return template, true
	}
	switch path {
	case "metadata.name":
		return dynamic(literal(c.jobName()) + "-$(GBATCH_JOB_NUMBER)")
	case "metadata.uid":
		return dynamic("$(GPULAB_JOB_ID)")
	case "metadata.namespace":
		if c.namespace == "" {
			return dynamic("$(GPULAB_PROJECT)")
		}
		return literal(c.namespace), true
	case "spec.nodeName":
		return dynamic("$(GPULAB_SLAVE_HOSTNAME)")
	case "status.podIP", "status.podIPs":
		return dynamic("$(GBATCH_ADDRESS)")
	case "status.hostIP", "status.hostIPs":
		return dynamic("$(GBATCH_HOST_ADDRESS)")
	case "spec.serviceAccountName":
		return "default", true
	}
	if kind, key, ok := bracketed(path); ok {
		if c.ofPods[key] {
			c.askedLabels[key] = true
			return dynamic("$(" + names.LabelVariable(key) + ")")
		}
		switch key {
		case indexField:
			return dynamic("$(JOB_COMPLETION_INDEX)")
		case "job-name", "batch.kubernetes.io/job-name":
			return literal(c.jobName()), true
		}
		return literal(c.podLabels[kind+" "+key]), true
	}
	d.Problem(n, fmt.Sprintf("is the field %s, which is not known here", document.Quote(path)), "the program's environment has GBATCH_JOB_NAME, GBATCH_JOB_NUMBER and others")
	return "", false
}

// resourceField is an amount of the container's in units of the divisor.
func (c *container) resourceField(d *decoder, n *node) (string, bool) {
	text := func(key string) string {
		if x := n.Given(key); x != nil {
			s, _ := d.Scalar(x)
			return s
		}
		return ""
	}
	resource, divisor := text("resource"), 1.0
	if s := text("divisor"); s != "" && s != "0" {
		x, err := sizes.Quantity(s)
		if err != nil || x == 0 {
			d.Problem(n, fmt.Sprintf("has the divisor %s, which is no amount", document.Quote(s)), "")
			return "", false
		}
		divisor = x
	}
	if of := text("containerName"); of != "" && of != c.called {
		d.Problem(n, fmt.Sprintf("is about the container %s, and only its own amounts are known in a container", document.Quote(of)), "write the amount")
		return "", false
	}
	_, name, _ := strings.Cut(resource, ".")
	granted := map[string]float64{"cpu": float64(c.spec.Request.Resources.CPUs), "memory": float64(c.spec.Request.Resources.CPUMemoryGB) * (1 << 30),
		"ephemeral-storage": float64(c.spec.Gbatch.DiskGB) * (1 << 30)}
	amount, ok := granted[name]
	if !ok || !strings.HasPrefix(resource, "limits.") && !strings.HasPrefix(resource, "requests.") {
		d.Problem(n, fmt.Sprintf("names %s", document.Quote(resource)), "limits and requests of cpu, memory and ephemeral-storage are known")
		return "", false
	}
	of := c.limits
	if strings.HasPrefix(resource, "requests.") && c.requests[name] != nil {
		of = c.requests
	}
	if given := of[name]; given != nil {
		if x, err := sizes.Quantity(given.Text); err == nil {
			amount = x
		}
	}
	return fmt.Sprint(int64(math.Ceil(amount / divisor))), true
}

// literal is a text as job.Expand gives it back.
func literal(s string) string { return strings.ReplaceAll(s, "$", "$$") }

// template is a word of the file for job.Expand, with $(NAME) replaced by the
// container's own variables as far as they are known before it runs: $$ is a $, and
// an unknown name stays. Variables may have others in them: once they came to more
// than a document may have, which is refused, the rest is cut.
func (c *container) template(d *decoder, n *node, word string) string {
	if !strings.Contains(word, "$") {
		return word
	}
	if c.reference == nil {
		c.reference = regexp.MustCompile(`\$\$|\$\([A-Za-z_.-][A-Za-z0-9_.-]*\)|\$`)
	}
	return c.reference.ReplaceAllStringFunc(word, func(m string) string {
		if m == "$" || m == "$$" {
			return "$$"
		}
		name := m[2 : len(m)-1]
		v, ok := c.values[name]
		switch {
		case c.secret[name]: // its value is put in where the container begins, and in no file
			c.runsDynamic = true
			return m
		case !ok && c.indexed && foreign.IsTaskVariable(name), c.inCommand && c.ofRanks[name]:
			c.runsDynamic = true
			return m
		case !ok:
			return "$" + m
		}
		v = v[:min(len(v), document.MaxBytes-c.expanded)]
		c.expanded += len(v)
		return v
	})
}

func (c *container) templates(d *decoder, n *node, words []string) []string {
	c.inCommand = true
	defer func() { c.inCommand = false }()
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = c.template(d, n, w)
	}
	return out
}

func orNull(n *node) *node {
	if n == nil {
		return &node{}
	}
	return n
}
