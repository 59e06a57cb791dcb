package importer

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gbatch/internal/job"
	"gbatch/oci/ref"
)

// ccluster is a CCluster batch job on its way to a job.
type ccluster struct {
	sub job.Submission

	image, tag                   string
	imageNode                    *node
	user, password               *node
	completions, parallelism     int
	parallelismNode, commandNode *node
	command                      []string
}

// cclusterNames are the keys by their letters alone: the API's, and those of
// the form, whose labels people write as "Backoff Limit" or backoffLimit.
var cclusterNames = map[string]string{
	"jobname": "name", "containerimageurl": "image_url", "imageurl": "image_url", "image": "image_url",
	"containertag": "image_tag", "imagetag": "image_tag", "tag": "image_tag",
	"imagepullsecretusername": "image_pull_username", "imagepullsecretpassword": "image_pull_password",
	"imagepullsecretcredentials": "image_pull_secret_credentials",
	"backofflimit":               "backoff_limit", "activedeadlineseconds": "active_deadline_seconds",
	"enablelogging": "enable_logging", "environmentvariables": "env_vars", "envvars": "env_vars",
	"annotations": "user_annotations", "userannotations": "user_annotations",
	"clusterid": "cluster_id", "cluster": "cluster_id", "hardwareinstanceid": "hardware_instance_id", "hardwareinstance": "hardware_instance_id",
	"configfile": "config_file", "completions": "completions", "parallelism": "parallelism", "command": "command", "name": "name", "args": "args",
}

func canonical(key string) string {
	letters := strings.Map(func(c rune) rune {
		if c == ' ' || c == '_' || c == '-' || c == '/' {
			return -1
		}
		return c
	}, strings.ToLower(key))
	if name, ok := cclusterNames[letters]; ok {
		return name
	}
	return key
}

// parseCCluster reads the request of CCluster's API, or the fields of its form.
func parseCCluster(data []byte, _ Options) (job.Submission, error) {
	n, err := readTree(data)
	if err != nil {
		return job.Submission{}, err
	}
	for _, kid := range n.kids {
		kid.key = canonical(kid.key)
	}
	d := &decoder{}
	c := &ccluster{completions: 1, parallelism: 1}
	limit := 3
	c.sub.Spec.Gbatch = &job.Gbatch{Source: string(CCluster), StopGrace: 30,
		Retry: &job.Retry{JobLimit: &limit, Backoff: job.DefaultBackoff, MaxWait: job.DefaultMaxWait}}
	if object(d, n, cclusterFields, c) {
		c.settle(d, n)
	}
	return d.finish(c.sub)
}

var cclusterFields = []field[ccluster]{
	{"name", func(d *decoder, n *node, c *ccluster) {
		if s, ok := d.str(n); ok {
			c.sub.Spec.Name = s
			if wrong := cclusterName(s); wrong != "" {
				d.problem(n, wrong, "")
			}
		}
		d.becomes("name", n)
	}, true},
	{"image_url", func(d *decoder, n *node, c *ccluster) { c.image, _ = d.str(n); c.imageNode = n }, true},
	{"image_tag", func(d *decoder, n *node, c *ccluster) { c.tag, _ = d.scalar(n) }, false},
	{"image_pull_secret_credentials", func(d *decoder, n *node, c *ccluster) { object(d, n, cclusterLoginFields, c) }, false},
	{"image_pull_username", func(_ *decoder, n *node, c *ccluster) { c.user = n }, false},
	{"image_pull_password", func(_ *decoder, n *node, c *ccluster) { c.password = n }, false},
	{"completions", func(d *decoder, n *node, c *ccluster) {
		if x, ok := d.integer(n, 1, job.MaxTasks); ok {
			c.completions = x
		}
	}, false},
	{"parallelism", func(d *decoder, n *node, c *ccluster) {
		if x, ok := d.integer(n, 1, job.MaxTasks); ok {
			c.parallelism, c.parallelismNode = x, n
		}
	}, false},
	{"backoff_limit", func(d *decoder, n *node, c *ccluster) {
		if x, ok := d.integer(n, 0, 1_000_000); ok {
			c.sub.Spec.Gbatch.Retry.JobLimit = &x
		}
	}, false},
	{"active_deadline_seconds", func(d *decoder, n *node, c *ccluster) { d.deadline(n, &c.sub.Spec, job.LimitJob) }, false},
	{"command", cclusterCommand, false},
	{"args", func(d *decoder, n *node, c *ccluster) {
		if argv := d.strs(n); len(argv) > 0 {
			c.sub.Spec.Request.Docker.Command = job.Command{Argv: argv}
		}
		d.becomes("request.docker.command", n)
	}, false},
	{"enable_logging", func(d *decoder, n *node, _ *ccluster) {
		if on, ok := d.boolean(n); ok && !on {
			d.note(n, "is not used: the output of every job is kept, and glog shows it")
		}
	}, false},
	{"env_vars", cclusterEnv, false},
	{"user_annotations", func(d *decoder, n *node, c *ccluster) {
		k := kubeJob{spec: c.sub.Spec}
		kubeLabels(d, n, &k)
	}, false},
	{"cluster_id", func(d *decoder, n *node, c *ccluster) {
		c.sub.Spec.Request.Resources.ClusterID, _ = d.integer(n, 0, 1_000_000)
		d.becomes("request.resources.clusterId", n)
	}, false},
	{"hardware_instance_id", func(d *decoder, n *node, c *ccluster) {
		c.sub.Spec.Gbatch.InstanceType, _ = d.scalar(n)
		d.becomes("gbatch.instanceType", n)
	}, true},
	{"config_file", refuse[ccluster]("put the file into project storage, and mount it in a native job"), false},
	{"type", func(d *decoder, n *node, _ *ccluster) { d.oneOf(n, "job", "batch", "JOB", "BATCH") }, false},
}

var cclusterLoginFields = []field[ccluster]{
	{"username", func(_ *decoder, n *node, c *ccluster) { c.user = n }, false},
	{"password", func(_ *decoder, n *node, c *ccluster) { c.password = n }, false},
	{"registry", remark[ccluster]("is not used: the login is for the registry that the image names"), false},
	{"server", remark[ccluster]("is not used: the login is for the registry that the image names"), false},
}

var cclusterNameForm = regexp.MustCompile(`^[a-z]([a-z0-9-]*[a-z0-9])?$`)

func cclusterName(s string) string {
	if !cclusterNameForm.MatchString(s) || len(s) > 20 {
		return fmt.Sprintf("is %s: a name has at most 20 lower-case letters, digits and -, begins with a letter and ends with a letter or digit", quote(s))
	}
	return ""
}

// cclusterCommand reads what replaces the image's entrypoint: a list, or a line
// of words. The words behind a shell's -c are one program, as the form's own
// example has it.
func cclusterCommand(d *decoder, n *node, c *ccluster) {
	d.becomes("gbatch.entrypoint", n)
	if n.kind != stringKind {
		c.command = d.strs(n)
		return
	}
	words, err := shellWords(n.text)
	if err != nil {
		d.problem(n, err.Error(), "check the quotes, or write a list of words")
		return
	}
	if len(words) > 3 && words[1] == "-c" && isPOSIXShell(words[0]) {
		_, line, _ := strings.Cut(n.text, "-c")
		words = []string{words[0], "-c", strings.TrimSpace(line)}
		d.note(n, fmt.Sprintf("runs %s as one shell command", quote(words[2])))
	}
	c.command = words
}

func cclusterEnv(d *decoder, n *node, c *ccluster) {
	set := func(at *node, name string, value *node) {
		text, ok := d.scalar(value)
		if !ok {
			return
		}
		if reserved(name) {
			d.problem(at, fmt.Sprintf("sets %s, which is set for every task", name), "remove it")
			return
		}
		env := &c.sub.Spec.Request.Docker.Environment
		if *env == nil {
			*env = map[string]string{}
		}
		if _, ok := (*env)[name]; ok {
			d.problem(at, fmt.Sprintf("sets %s a second time", quote(name)), "keep one of them")
		}
		(*env)[name] = text
		d.becomes(member("request.docker.environment", name), at)
	}
	if n.kind == objectKind {
		for _, kid := range n.kids {
			set(kid, kid.key, kid)
		}
		return
	}
	d.elements(n, func(n *node) {
		var v struct{ key, value *node }
		name := func(_ *decoder, n *node, v *struct{ key, value *node }) { v.key = n }
		if !object(d, n, []field[struct{ key, value *node }]{{"key", name, false}, {"name", name, false},
			{"value", func(_ *decoder, n *node, v *struct{ key, value *node }) { v.value = n }, true}}, &v) || v.value == nil {
			return
		}
		if v.key == nil {
			d.missing(n, "key", "")
		} else if key, ok := d.str(v.key); ok {
			set(n, key, v.value)
		}
	})
}

// settle makes of what was read what only makes sense together.
func (c *ccluster) settle(d *decoder, n *node) {
	if c.imageNode != nil {
		d.becomes("request.docker.image", c.imageNode)
		c.setImage(d)
	}
	c.login(d, n)
	if len(c.command) > 0 {
		c.sub.Spec.Gbatch.Entrypoint = c.command
	}
	if c.parallelism > c.completions {
		d.problem(c.parallelismNode, fmt.Sprintf("must be at most completions, %d, is %d", c.completions, c.parallelism), "")
	}
	// A job of one task has an index too: it is told 0 of 1.
	t := &job.Tasks{Indexes: job.FirstIndexes(c.completions)}
	if c.parallelism < c.completions {
		t.Parallelism = c.parallelism
	}
	c.sub.Spec.Gbatch.Tasks = t
}

func (c *ccluster) setImage(d *decoder) {
	image := c.image
	if c.tag != "" {
		if last := image[strings.LastIndexByte(image, '/')+1:]; strings.ContainsAny(last, ":@") {
			d.problem(c.imageNode, "has a tag, and image_tag is given too", "keep one of them")
			return
		}
		image += ":" + c.tag
	}
	c.sub.Spec.Request.Docker.Image = image
}

// login wants both halves of the registry's login or neither.
func (c *ccluster) login(d *decoder, n *node) {
	half := func(n *node) string {
		if n == nil {
			return ""
		}
		s, _ := d.str(n)
		return s
	}
	user, password := half(c.user), half(c.password)
	switch at := []*node{c.user, c.password}; {
	case user == "" && password == "":
	case user == "" || password == "":
		at = slices.DeleteFunc(at, func(n *node) bool { return n == nil })
		d.problem(at[0], "is half of a login: username and password are given both, or neither", "")
	default:
		r, creds, err := ref.Parse(c.sub.Spec.Request.Docker.Image)
		switch {
		case err != nil: // told with the image
		case creds != nil:
			d.problem(c.imageNode, "has a login, and so have the credentials", "keep one of them")
		default:
			c.sub.Spec.Request.Docker.Image = r.String()
			c.sub.Registry = &ref.Credentials{Username: user, Password: password}
		}
	}
}
