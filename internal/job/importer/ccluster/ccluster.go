// Package ccluster reads CCluster's batch jobs: the request of its API, or the
// fields of its form. It is pure.
package ccluster

import (
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/foreign"
	"gbatch/internal/job/indexes"
	"gbatch/internal/job/words"
	"gbatch/oci/ref"
)

type (
	decoder      = foreign.Decoder
	node         = document.Node
	field[T any] = foreign.Field[T]
)

// Source is the format's name, which a job keeps.
const Source = "ccluster"

// batch is a CCluster batch job on its way to a job.
type batch struct {
	sub job.Submission

	image, tag                   string
	imageNode                    *node
	user, password               *node
	completions, parallelism     int
	parallelismNode, commandNode *node
	command                      []string
}

// Canonical is the key of the API that a key means, by its letters alone:
// people write the labels of the form as "Backoff Limit" or backoffLimit.
func Canonical(key string) string {
	letters := strings.Map(func(c rune) rune {
		if c == ' ' || c == '_' || c == '-' || c == '/' {
			return -1
		}
		return c
	}, strings.ToLower(key))
	if name := canonical[letters]; name != "" {
		return name
	}
	return key
}

// canonical are the keys of the API, by the letters that people write.
var canonical = map[string]string{
	"name": "name", "jobname": "name", "completions": "completions", "parallelism": "parallelism", "command": "command", "args": "args",
	"containerimageurl": "image_url", "imageurl": "image_url", "image": "image_url",
	"containertag": "image_tag", "imagetag": "image_tag", "tag": "image_tag",
	"imagepullsecretusername": "image_pull_username", "imagepullsecretpassword": "image_pull_password",
	"imagepullsecretcredentials": "image_pull_secret_credentials", "backofflimit": "backoff_limit",
	"activedeadlineseconds": "active_deadline_seconds", "enablelogging": "enable_logging",
	"environmentvariables": "env_vars", "envvars": "env_vars", "annotations": "user_annotations", "userannotations": "user_annotations",
	"clusterid": "cluster_id", "cluster": "cluster_id", "hardwareinstanceid": "hardware_instance_id", "hardwareinstance": "hardware_instance_id",
	"configfile": "config_file",
}

// Parse reads the request of CCluster's API, or the fields of its form.
func Parse(data []byte) (job.Submission, error) {
	n, err := document.Read(data)
	if err != nil {
		return job.Submission{}, err
	}
	for _, kid := range n.Kids {
		kid.Key = Canonical(kid.Key)
	}
	d := foreign.New()
	c := &batch{completions: 1, parallelism: 1}
	limit := 3
	c.sub.Spec.Gbatch = &job.Gbatch{Source: Source, StopGrace: 30,
		Retry: &job.Retry{JobLimit: &limit, Backoff: job.DefaultBackoff, MaxWait: job.DefaultMaxWait}}
	if document.Object(d, n, fields, c) {
		c.combine(d, n)
	}
	return d.Finish(c.sub)
}

var fields = []field[batch]{
	{"name", func(d *decoder, n *node, c *batch) {
		if s, ok := d.Str(n); ok {
			c.sub.Spec.Name = s
			if wrong := wrongName(s); wrong != "" {
				d.Problem(n, wrong, "")
			}
		}
		d.Becomes("name", n)
	}, true},
	{"image_url", func(d *decoder, n *node, c *batch) { c.image, _ = d.Str(n); c.imageNode = n }, true},
	{"image_tag", func(d *decoder, n *node, c *batch) { c.tag, _ = d.Scalar(n) }, false},
	{"image_pull_secret_credentials", func(d *decoder, n *node, c *batch) { document.Object(d, n, loginFields, c) }, false},
	{"image_pull_username", func(_ *decoder, n *node, c *batch) { c.user = n }, false},
	{"image_pull_password", func(_ *decoder, n *node, c *batch) { c.password = n }, false},
	{"completions", func(d *decoder, n *node, c *batch) {
		if x, ok := d.Integer(n, 1, job.MaxTasks); ok {
			c.completions = x
		}
	}, false},
	{"parallelism", func(d *decoder, n *node, c *batch) {
		if x, ok := d.Integer(n, 1, job.MaxTasks); ok {
			c.parallelism, c.parallelismNode = x, n
		}
	}, false},
	{"backoff_limit", func(d *decoder, n *node, c *batch) {
		if x, ok := d.Integer(n, 0, 1_000_000); ok {
			c.sub.Spec.Gbatch.Retry.JobLimit = &x
		}
	}, false},
	{"active_deadline_seconds", func(d *decoder, n *node, c *batch) { d.Deadline(n, &c.sub.Spec, job.LimitJob) }, false},
	{"command", readCommand, false},
	{"args", func(d *decoder, n *node, c *batch) {
		if argv := d.Strs(n); len(argv) > 0 {
			c.sub.Spec.Request.Docker.Command = job.Command{Argv: argv}
		}
		d.Becomes("request.docker.command", n)
	}, false},
	{"enable_logging", func(d *decoder, n *node, _ *batch) {
		if on, ok := d.Boolean(n); ok && !on {
			d.Note(n, "is not used: the output of every job is kept, and glog shows it")
		}
	}, false},
	{"env_vars", readEnv, false},
	{"user_annotations", func(d *decoder, n *node, c *batch) { d.Labels(n, c.sub.Spec.Gbatch) }, false},
	{"cluster_id", func(d *decoder, n *node, c *batch) {
		c.sub.Spec.Request.Resources.ClusterID, _ = d.Integer(n, 0, 1_000_000)
		d.Becomes("request.resources.clusterId", n)
	}, false},
	{"hardware_instance_id", func(d *decoder, n *node, c *batch) { d.Word(n, &c.sub.Spec.Gbatch.InstanceType, "gbatch.instanceType") }, true},
	{"config_file", foreign.Refuse[batch]("put the file into project storage, and mount it in a native job"), false},
	{"type", func(d *decoder, n *node, _ *batch) { d.OneOf(n, "job", "batch", "JOB", "BATCH") }, false},
}

var loginFields = []field[batch]{
	{"username", func(_ *decoder, n *node, c *batch) { c.user = n }, false},
	{"password", func(_ *decoder, n *node, c *batch) { c.password = n }, false},
	{"registry", foreign.Remark[batch]("is not used: the login is for the registry that the image names"), false},
	{"server", foreign.Remark[batch]("is not used: the login is for the registry that the image names"), false},
}

func wrongName(s string) string {
	if !document.IsName(s, "-", 20) || s != strings.ToLower(s) || s[0] < 'a' || s[len(s)-1] == '-' {
		return fmt.Sprintf("is %s: a name has at most 20 lower-case letters, digits and -, begins with a letter and ends with a letter or digit", document.Quote(s))
	}
	return ""
}

// readCommand reads what replaces the image's entrypoint: a list, or a line
// of words. The words behind a shell's -c are one program, as the form's own
// example has it.
func readCommand(d *decoder, n *node, c *batch) {
	d.Becomes("gbatch.entrypoint", n)
	if n.Kind != document.StringKind {
		c.command = d.Strs(n)
		return
	}
	words, err := words.Split(n.Text)
	if err != nil {
		d.Problem(n, err.Error(), "check the quotes, or write a list of words")
		return
	}
	if len(words) > 3 && words[1] == "-c" && foreign.IsPOSIXShell(words[0]) {
		_, line, _ := strings.Cut(n.Text, "-c")
		words = []string{words[0], "-c", strings.TrimSpace(line)}
		d.Note(n, fmt.Sprintf("runs %s as one shell command", document.Quote(words[2])))
	}
	c.command = words
}

func readEnv(d *decoder, n *node, c *batch) {
	set := func(at *node, name string, value *node) {
		text, ok := d.Scalar(value)
		if !ok {
			return
		}
		if foreign.IsTaskVariable(name) {
			d.Problem(at, fmt.Sprintf("sets %s, which is set for every task", name), "remove it")
			return
		}
		env := &c.sub.Spec.Request.Docker.Environment
		if _, ok := (*env)[name]; ok {
			d.Problem(at, fmt.Sprintf("sets %s a second time", document.Quote(name)), "keep one of them")
		}
		foreign.Set(env, name, text)
		d.Becomes(document.Member("request.docker.environment", name), at)
	}
	if n.Kind == document.ObjectKind {
		for _, kid := range n.Kids {
			set(kid, kid.Key, kid)
		}
		return
	}
	d.Elements(n, func(n *node) {
		var v struct{ key, value *node }
		name := func(_ *decoder, n *node, v *struct{ key, value *node }) { v.key = n }
		if !document.Object(d, n, []field[struct{ key, value *node }]{{"key", name, false}, {"name", name, false},
			{"value", func(_ *decoder, n *node, v *struct{ key, value *node }) { v.value = n }, true}}, &v) || v.value == nil {
			return
		}
		if v.key == nil {
			d.Missing(n, "key", "")
		} else if key, ok := d.Str(v.key); ok {
			set(n, key, v.value)
		}
	})
}

// combine makes of what was read what only makes sense together.
func (c *batch) combine(d *decoder, n *node) {
	if c.imageNode != nil {
		d.Becomes("request.docker.image", c.imageNode)
		c.setImage(d)
	}
	c.login(d)
	if len(c.command) > 0 {
		c.sub.Spec.Gbatch.Entrypoint = c.command
	}
	if c.parallelism > c.completions {
		d.Problem(c.parallelismNode, fmt.Sprintf("must be at most completions, %d, is %d", c.completions, c.parallelism), "")
	}
	// A job of one task has an index too: it is told 0 of 1.
	t := &job.Tasks{Indexes: indexes.First(c.completions)}
	if c.parallelism < c.completions {
		t.Parallelism = c.parallelism
	}
	c.sub.Spec.Gbatch.Tasks = t
}

func (c *batch) setImage(d *decoder) {
	image := c.image
	if c.tag != "" {
		if last := image[strings.LastIndexByte(image, '/')+1:]; strings.ContainsAny(last, ":@") {
			d.Problem(c.imageNode, "has a tag, and image_tag is given too", "keep one of them")
			return
		}
		image += ":" + c.tag
	}
	c.sub.Spec.Request.Docker.Image = image
}

// login wants both halves of the registry's login or neither.
func (c *batch) login(d *decoder) {
	half := func(n *node) string {
		if n == nil {
			return ""
		}
		s, _ := d.Str(n)
		return s
	}
	user, password := half(c.user), half(c.password)
	switch at := []*node{c.user, c.password}; {
	case user == "" && password == "":
	case user == "" || password == "":
		at = slices.DeleteFunc(at, func(n *node) bool { return n == nil })
		d.Problem(at[0], "is half of a login: username and password are given both, or neither", "")
	default:
		r, creds, err := ref.Parse(c.sub.Spec.Request.Docker.Image)
		switch {
		case err != nil: // told with the image
		case creds != nil:
			d.Problem(c.imageNode, "has a login, and so have the credentials", "keep one of them")
		default:
			c.sub.Spec.Request.Docker.Image = r.String()
			c.sub.Registry = &ref.Credentials{Username: user, Password: password}
		}
	}
}
