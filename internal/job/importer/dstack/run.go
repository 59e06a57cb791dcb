package dstack

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/foreign"
	"gbatch/internal/job/words"
	"gbatch/oci/ref"
)

// interpolation is the form of ${{ env.NAME }}.
const interpolation = `\$\{\{\s*([^}]*?)\s*\}\}`

// readEnv reads a map or a list of variables. One without a value is its
// author's, most often a token: it becomes a secret, which nobody sees.
func (t *task) readEnv(d *decoder, n *node) {
	t.env, t.unset, t.secret = map[string]string{}, map[string]bool{}, map[string]bool{}
	d.Becomes("request.docker.environment", n)
	switch n.Kind {
	case document.ObjectKind:
		for _, kid := range n.Kids {
			if value, ok := d.Scalar(kid); ok {
				t.setEnv(d, kid, kid.Key, value)
			}
		}
	case document.ArrayKind:
		d.Elements(n, func(n *node) {
			s, ok := d.Str(n)
			if !ok {
				return
			}
			if name, value, given := strings.Cut(s, "="); given {
				t.setEnv(d, n, name, value)
			} else {
				t.callersEnv(d, n, name)
			}
		})
	default:
		d.WrongKind(n, "a map or a list of variables")
	}
}

// newVariable checks the name of a variable.
func (t *task) newVariable(d *decoder, n *node, name string) bool {
	_, twice := t.env[name]
	switch {
	case !document.IsName("x"+name, "_", len(name)+1) || name == "" || '0' <= name[0] && name[0] <= '9':
		d.Problem(n, fmt.Sprintf("names the variable %s: want letters, digits and _, the first no digit", document.Quote(name)), "")
	case strings.HasPrefix(name, "DSTACK_"):
		d.Problem(n, fmt.Sprintf("sets %s: names that start with DSTACK_ are set by the system", document.Quote(name)), "")
	case twice || t.unset[name]:
		d.Problem(n, fmt.Sprintf("sets %s a second time", document.Quote(name)), "keep one of them")
	default:
		return true
	}
	return false
}

func (t *task) setEnv(d *decoder, n *node, name, value string) {
	if !t.newVariable(d, n, name) {
		return
	}
	if m := t.interpolation.FindStringSubmatch(value); m != nil {
		t.secretEnv(d, n, name, value)
		return
	}
	t.env[name] = value
	t.plainEnv(d, n, name, value)
}

// secretEnv gives the container a variable with secrets in it, which is one itself.
// Their values are the author's variables of their names, as far as there are such.
func (t *task) secretEnv(d *decoder, n *node, name, value string) {
	unknown := ""
	before := d.Count()
	text := t.interpolation.ReplaceAllStringFunc(value, func(m string) string {
		secret, ok := strings.CutPrefix(t.interpolation.FindStringSubmatch(m)[1], "secrets.")
		if !ok {
			d.Problem(n, fmt.Sprintf("has %s inside a value", m), "write the value")
			return ""
		}
		if t.o.Env != nil {
			if v, known := t.o.Env(secret); known {
				return v
			}
		}
		unknown = secret
		return ""
	})
	switch whole := t.interpolation.FindString(value) == strings.TrimSpace(value); {
	case d.Count() > before:
	case unknown == "" && job.SecretName(name) == "" && job.SecretValue(text) == "":
		t.env[name], t.secret[name] = text, true
		t.addSecret(d, n, name)
		foreign.Set(&t.sub.Secrets, name, text)
		d.Note(n, "is taken from your environment and kept as a secret")
	case whole:
		t.unset[name] = true
		t.addSecret(d, n, name)
		d.Note(n, fmt.Sprintf("is a secret: submit with --secret %s and the value of %s", name, unknown))
	default:
		d.Problem(n, fmt.Sprintf("needs the secret %s inside a value, and it is not known here", unknown), "export "+unknown+" where the task is submitted: gbatch keeps no secrets of projects")
	}
}

// plainEnv gives the container a variable that everybody may see.
func (t *task) plainEnv(d *decoder, n *node, name, value string) {
	foreign.Set(&t.sub.Spec.Request.Docker.Environment, name, value)
	d.Becomes(document.Member("request.docker.environment", name), n)
}

// callersEnv takes the value of a variable from where the task is submitted.
func (t *task) callersEnv(d *decoder, n *node, name string) {
	if !t.newVariable(d, n, name) {
		return
	}
	if t.o.Env == nil {
		t.unset[name] = true
		t.addSecret(d, n, name)
		d.Note(n, fmt.Sprintf("is a secret: submit with --secret %s", name))
		return
	}
	value, ok := t.o.Env(name)
	if !ok {
		t.unset[name] = true
		d.Problem(n, fmt.Sprintf("takes %s from your environment, where it is not set", name), fmt.Sprintf("export %s, submit with --secret %s@FILE, or write %s=VALUE", name, name, name))
		return
	}
	t.env[name] = value
	if job.SecretName(name) != "" || value == "" { // what a secret cannot be
		t.plainEnv(d, n, name, value)
		return
	}
	t.addSecret(d, n, name)
	t.secret[name] = true
	foreign.Set(&t.sub.Secrets, name, value)
	d.Note(n, "is taken from your environment and kept as a secret")
}

func (t *task) addSecret(d *decoder, n *node, name string) {
	g := t.sub.Spec.Gbatch
	d.Becomes(fmt.Sprintf("gbatch.secrets[%d]", len(g.Secrets)), n)
	g.Secrets = append(g.Secrets, job.Secret{Name: name})
}

// maxInterpolated bounds what variables add to a text.
const maxInterpolated = 64 << 10

// text reads a string with ${{ env.NAME }} in it. It quotes no value. Secrets
// are only put into what is private itself.
func (t *task) text(d *decoder, n *node, private bool) (string, bool) {
	s, ok := d.Str(n)
	if !ok {
		return "", false
	}
	more := maxInterpolated
	s = t.interpolation.ReplaceAllStringFunc(s, func(m string) string {
		what := t.interpolation.FindStringSubmatch(m)[1]
		name, isEnv := strings.CutPrefix(what, "env.")
		value, known := t.env[name]
		switch {
		case isEnv && known && t.secret[name] && !private:
			d.Problem(n, fmt.Sprintf("would show %s, which is taken from your environment and kept as a secret", name), fmt.Sprintf("write %s=VALUE in env if everybody may see it", name))
		case isEnv && known && len(value) <= more:
			more -= len(value)
			return value
		case isEnv && known:
			if ok {
				d.Problem(n, fmt.Sprintf("has more than %d bytes with its variables", maxInterpolated), "")
			}
		case isEnv && t.unset[name]:
			d.Problem(n, fmt.Sprintf("needs the value of %s, which is not known here", name), "export "+name+" where the task is submitted")
		case isEnv:
			d.Problem(n, fmt.Sprintf("names %s, which env does not have", name), "add "+name+" to env")
		case strings.HasPrefix(what, "secrets."):
			secret := strings.TrimPrefix(what, "secrets.")
			if private && t.o.Env != nil {
				if value, known := t.o.Env(secret); known && len(value) <= more {
					more -= len(value)
					return value
				}
			}
			d.Problem(n, fmt.Sprintf("uses %s, and gbatch keeps no secrets of projects", m),
				"export "+secret+" where the task is submitted: in registry_auth it is taken from there")
		default:
			d.Problem(n, fmt.Sprintf("has %s, which has no meaning here", m), "write the value")
		}
		ok = false
		return m
	})
	return s, ok
}

func readImage(d *decoder, n *node, t *task) {
	t.sub.Spec.Request.Docker.Image, _ = t.text(d, n, false)
	d.Becomes("request.docker.image", n)
}

func readPython(d *decoder, n *node, t *task) {
	s, ok := d.Scalar(n)
	if ok && !regexp.MustCompile(`^[23]\.[0-9]{1,2}$`).MatchString(s) {
		d.Problem(n, fmt.Sprintf("is %s, which is no version of Python such as 3.12", document.Quote(s)), "")
		return
	}
	t.python = s
}

// applyImage names one of the site's images where the task names none.
func (t *task) applyImage(d *decoder, n *node) {
	image := n.Given("image")
	for _, key := range []string{"python", "nvcc", "docker"} {
		if kid := n.Given(key); kid != nil && image != nil && (key == "python" || key == "nvcc" && t.nvcc || key == "docker" && t.docker) {
			d.Problem(kid, "cannot be combined with image", "keep one of them")
		}
	}
	switch auth := n.Given("registry_auth"); {
	case auth != nil && image == nil:
		d.Problem(auth, "is a login for an image, and none is named", "add \"image\", or remove it")
	case strings.Contains(t.user, ":"):
		d.Problem(t.authAt.Child("username"), "must not contain a colon", "")
	case t.user != "" && t.pass != "":
		t.sub.Registry = &ref.Credentials{Username: t.user, Password: t.pass}
		if strings.Contains(strings.Split(t.sub.Spec.Request.Docker.Image, "@sha256:")[0], "@") {
			d.Problem(auth, "is a second login: image has one in it", "keep one of them")
			t.sub.Registry = nil
		}
	}
	switch {
	case image != nil:
		return
	case t.docker:
		t.sub.Spec.Request.Docker.Image = dindImage
		t.commands = slices.Insert(t.commands, 0, "start-dockerd")
		d.Becomes("request.docker.image", n.Given("docker"))
		return
	case t.o.Image != "":
		t.sub.Spec.Request.Docker.Image = t.o.Image
		d.Becomes("request.docker.image", n)
		return
	}
	alias := "default"
	if t.python != "" {
		alias = "python:" + t.python
	}
	if t.nvcc {
		alias += "+nvcc"
	}
	t.sub.Spec.Gbatch.ImageAlias = alias
	d.Becomes("gbatch.imageAlias", n)
	d.Note(n, fmt.Sprintf("names no image: the site's image %q is used", alias))
}

// authFields are those of registry_auth.
var authFields = []field[task]{
	{"username", func(d *decoder, n *node, t *task) { t.user, _ = t.text(d, n, true) }, true},
	{"password", func(d *decoder, n *node, t *task) { t.pass, _ = t.text(d, n, true) }, true},
}

func readAuth(d *decoder, n *node, t *task) {
	t.authAt = n
	document.Object(d, n, authFields, t)
}

func readEntrypoint(d *decoder, n *node, t *task, s string) {
	words, err := words.Split(s)
	switch {
	case err != nil:
		d.Problem(n, err.Error(), "")
	case len(words) == 0:
		d.Problem(n, "must not be empty", "remove it to have the image's own")
	}
	t.entrypoint = words
	d.Becomes("gbatch.entrypoint", n)
}

func readCommands(d *decoder, n *node, t *task) {
	d.Becomes("request.docker.command", n)
	d.Elements(n, func(n *node) {
		if n.Kind != document.StringKind {
			d.Problem(n, "must be a string, is "+n.Kind.String(), "put the command in quotes, or behind a | on lines of its own: YAML reads a colon with a blank behind it as a key")
			return
		}
		t.commands = append(t.commands, t.interpolation.ReplaceAllStringFunc(n.Text, func(m string) string {
			return t.runArgument(d, n, t.interpolation.FindStringSubmatch(m)[1], m)
		}))
	})
}

// runArgument is what takes the place of what is named in a command: the run's
// arguments, each as a word of a shell.
func (t *task) runArgument(d *decoder, n *node, what, whole string) string {
	if what != "run.args" {
		d.Problem(n, fmt.Sprintf("has %s, and commands are not changed here", whole), "write variables as the shell knows them: $NAME, and ${{ run.args }} for what follows -- behind the file")
		return ""
	}
	words := make([]string, len(t.o.Args))
	for i, w := range t.o.Args {
		if words[i] = w; w == "" || strings.Trim(w, plainLetters) != "" {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'"'"'`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// plainLetters need no quotes in a shell.
const plainLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"

func readShell(d *decoder, n *node, t *task, s string) {
	switch {
	case s == "sh" || s == "bash":
		t.shell = "/bin/" + s
	case path.IsAbs(s):
		t.shell = s
	default:
		d.Problem(n, fmt.Sprintf("must be sh, bash or an absolute path, is %s", document.Quote(s)), "")
	}
}

// applyCommand decides what runs: commands as arguments of entrypoint, else in
// a shell, else the image's own.
func (t *task) applyCommand(d *decoder, n *node) {
	g, docker := t.sub.Spec.Gbatch, &t.sub.Spec.Request.Docker
	at := n.Given("commands")
	switch {
	case t.entrypoint != nil:
		g.Entrypoint = t.entrypoint
		docker.Command = job.Command{Argv: t.commands}
	case len(t.commands) > 0:
		shell := t.shell
		if shell == "" && docker.Image != "" {
			shell = "/bin/sh"
		} else if shell == "" {
			shell = "/bin/bash" // the default image has it
		}
		g.Entrypoint = []string{shell}
		docker.Command = job.Command{Argv: []string{"-c", joinCommands(t.commands)}}
	case n.Given("image") == nil && t.o.Image == "" && (at == nil || !d.Bad(at)):
		d.Missing(n, "commands", "give commands, or an image whose own program runs")
	}
}

// joinCommands makes one line of commands of which each needs the one before.
// One that ends in & is put in braces, since && must not follow it. There is no job
// control: what fg would bring to the front is waited for.
func joinCommands(commands []string) string {
	var parts []string
	for _, c := range commands {
		if c = strings.TrimSpace(c); strings.HasSuffix(c, "&") && !strings.HasSuffix(c, "&&") {
			c = "{ " + c + " }"
		} else if c == "fg" && len(parts) > 0 {
			c = "wait $!"
		}
		parts = append(parts, c)
	}
	return strings.Join(parts, " && ")
}

// repoDir is where relative working directories are.
const repoDir = "/workflow"

func readWorkDir(d *decoder, n *node, t *task) {
	s, ok := t.text(d, n, false)
	if !ok || s == "" {
		return
	}
	if !path.IsAbs(s) {
		s = path.Join(repoDir, s)
		if s != repoDir && !strings.HasPrefix(s, repoDir+"/") {
			d.Problem(n, "is outside of "+repoDir, "write an absolute path")
			return
		}
		d.Note(n, "is relative, and read as "+s)
	}
	t.sub.Spec.Request.Docker.WorkingDir = s
	d.Becomes("request.docker.workingDir", n)
}

// isPort says whether a text has the form of a port.
func isPort(s string) bool {
	return len(s) >= 1 && len(s) <= 5 && strings.Trim(s, "0123456789") == ""
}

// readPorts checks ports, which are reached through gexec, not at nodes.
func readPorts(d *decoder, n *node, _ *task) {
	var forwards []string
	one := func(d *decoder, n *node, local *string) {
		if x, ok := d.Integer(n, 1, 65535); ok {
			*local = strconv.Itoa(x)
		}
	}
	d.Elements(n, func(n *node) {
		var local, container string
		switch n.Kind {
		case document.NumberKind:
			one(d, n, &container)
		case document.StringKind:
			var both bool
			if local, container, both = strings.Cut(n.Text, ":"); !both {
				local, container = "", n.Text
			}
			if both && local != "*" && !isPort(local) || !isPort(container) {
				d.Problem(n, fmt.Sprintf("is %s, which is no port", document.Quote(n.Text)), `write 8080, "80:8080" or "*:8080"`)
				return
			}
			for _, p := range []string{local, container} {
				if x, err := strconv.Atoi(p); err == nil && (x < 1 || x > 65535) {
					d.Problem(n, fmt.Sprintf("has the port %d: ports are 1 to 65535", x), "")
				}
			}
		case document.ObjectKind:
			document.Object(d, n, []field[string]{
				{"local_port", func(d *decoder, n *node, _ *string) { one(d, n, &local) }, false},
				{"container_port", func(d *decoder, n *node, _ *string) { one(d, n, &container) }, true},
			}, &container)
		default:
			d.WrongKind(n, "a port")
		}
		switch local {
		case "":
			local = container
		case "*":
			local = "0"
		}
		forwards = append(forwards, "--forward "+local+":"+container)
	})
	if len(forwards) > 0 && !d.Bad(n) {
		d.Note(n, "are not forwarded when the task is submitted: once it runs, gexec "+strings.Join(forwards, " ")+" JOB does it")
	}
}
