package importer

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/job"
)

// kubeVariable is one variable of the container.
type kubeVariable struct {
	name, value string
	from        *node
}

var kubeVariableFields = []field[kubeVariable]{
	{"name", func(d *decoder, n *node, v *kubeVariable) { v.name, _ = d.str(n) }, true},
	{"value", func(d *decoder, n *node, v *kubeVariable) { v.value, _ = d.scalar(n) }, false},
	{"valueFrom", func(d *decoder, n *node, v *kubeVariable) { v.from = n }, false},
}

// kubeEnv reads the list of variables. A key of a secret becomes a secret of
// the variable's name, whose value comes with the submission.
func kubeEnv(d *decoder, n *node, c *kubeContainer) {
	env := map[string]string{}
	d.elements(n, func(n *node) {
		var v kubeVariable
		if !object(d, n, kubeVariableFields, &v) || v.name == "" {
			return
		}
		if _, ok := env[v.name]; ok {
			d.problem(n, fmt.Sprintf("sets %s a second time", quote(v.name)), "keep one of them")
			return
		}
		d.becomes(member("request.docker.environment", v.name), n)
		if v.from != nil {
			kubeValueFrom(d, v, c)
			return
		}
		if reserved(v.name) {
			d.problem(n, fmt.Sprintf("sets %s, which is set for every task", v.name), "remove it")
			return
		}
		env[v.name] = kubeExpand([]string{v.value}, env)[0]
	})
	if len(env) > 0 {
		c.spec.Request.Docker.Environment = env
	}
}

// reserved are the variables that tell a task its part.
func reserved(name string) bool { return name == "JOB_COMPLETION_INDEX" || name == "JOB_COMPLETIONS" }

func kubeValueFrom(d *decoder, v kubeVariable, c *kubeContainer) {
	key := v.from.given("secretKeyRef")
	field := v.from.given("fieldRef")
	switch {
	case key != nil:
		if slices.ContainsFunc(c.spec.Gbatch.Secrets, func(s job.Secret) bool { return s.Name == v.name }) {
			return
		}
		c.spec.Gbatch.Secrets = append(c.spec.Gbatch.Secrets, job.Secret{Name: v.name})
		d.note(v.from, fmt.Sprintf("is a secret whose value comes with the job: gsubmit --secret %s", v.name))
	case field != nil:
		path, _ := d.str(orNull(field.given("fieldPath")))
		switch {
		case strings.Contains(path, "batch.kubernetes.io/job-completion-index") && reserved(v.name):
		case strings.Contains(path, "batch.kubernetes.io/job-completion-index"):
			d.problem(v.from, "gives the task's index another name than JOB_COMPLETION_INDEX", "use that one, which is always set")
		default:
			d.problem(v.from, fmt.Sprintf("is the field %s, which is not known here", quote(path)), "use GBATCH_JOB_NAME, GBATCH_JOB_NUMBER and the other variables that every job has")
		}
	default:
		d.problem(v.from, "is not supported", "write the value, or make it a secret")
	}
}

func orNull(n *node) *node {
	if n == nil {
		return &node{}
	}
	return n
}

// kubeVolume is a volume of the pod, and what it becomes.
type kubeVolume struct {
	storage job.Storage // its containerPath is that of the mount
	nothing bool        // it needs no mount: the container's own root will do
	bad     bool        // told already
}

// volumeRoot is where volumes are that have a name and no path: in the
// project's storage, as dstack's are.
const volumeRoot = "/project/"

func kubeVolumes(d *decoder, n *node, k *kubeJob) {
	d.elements(n, func(n *node) {
		name := ""
		if x := n.given("name"); x != nil {
			name, _ = d.str(x)
		}
		v := kubeVolume{bad: true}
		for _, kid := range n.kids {
			switch kid.key {
			case "name":
			case "hostPath":
				if p := kid.given("path"); p != nil {
					path, ok := d.str(p)
					v = kubeVolume{storage: job.Storage{HostPath: strings.TrimSuffix(path, "/")}, bad: !ok}
				}
			case "persistentVolumeClaim":
				if p := kid.given("claimName"); p != nil {
					claim, ok := d.str(p)
					v = kubeVolume{storage: job.Storage{HostPath: volumeRoot + claim}, bad: !ok}
					d.note(kid, "is understood as the directory of the project's storage "+volumeRoot+claim)
				}
			case "emptyDir":
				v = kubeEmptyDir(d, kid)
			case "configMap", "secret", "projected", "downwardAPI":
				d.problem(kid, "is not supported", "bring files by project storage, or by gbatch.inputs and gbatch.secrets of a native job")
			default:
				d.problem(kid, "is a kind of volume that is not known here", "use hostPath with a path of the site's storage, persistentVolumeClaim or emptyDir")
			}
		}
		k.volumes[name] = v
	})
}

// kubeEmptyDir is memory if it says so; on disk the container's own root, which
// is as empty and as short-lived, will do.
func kubeEmptyDir(d *decoder, n *node) kubeVolume {
	medium, size := "", int64(0)
	if m := n.given("medium"); m != nil {
		medium, _ = d.str(m)
	}
	if s := n.given("sizeLimit"); s != nil {
		text, _ := d.scalar(s)
		x, err := kubeQuantity(text)
		if err != nil {
			d.problem(s, fmt.Sprintf("is %s, which is no amount", quote(text)), "")
		}
		size = int64(x)
	}
	if medium != "Memory" {
		return kubeVolume{nothing: true}
	}
	if size == 0 {
		d.note(n, "has no sizeLimit: it holds 1 GiB")
	}
	return kubeVolume{storage: job.Storage{HostPath: job.TmpfsHostPath, SizeGB: wholeGiB(size)}}
}

type kubeMountPoint struct {
	name, path, sub string
	readOnly        bool
}

var kubeMountFields = []field[kubeMountPoint]{
	{"name", func(d *decoder, n *node, m *kubeMountPoint) { m.name, _ = d.str(n) }, true},
	{"mountPath", func(d *decoder, n *node, m *kubeMountPoint) { m.path, _ = d.str(n) }, true},
	{"readOnly", func(d *decoder, n *node, m *kubeMountPoint) { m.readOnly, _ = d.boolean(n) }, false},
	{"subPath", func(d *decoder, n *node, m *kubeMountPoint) { m.sub, _ = d.str(n) }, false},
	{"mountPropagation", remark[kubeMountPoint]("is not used: what is mounted later stays where it is"), false},
	{"subPathExpr", refuse[kubeMountPoint]("use subPath"), false},
}

func kubeMount(d *decoder, n *node, k *kubeJob) {
	var m kubeMountPoint
	if !object(d, n, kubeMountFields, &m) {
		return
	}
	v, ok := k.volumes[m.name]
	switch {
	case !ok:
		d.problem(n, fmt.Sprintf("mounts %s, which is no volume of this job", quote(m.name)), "")
	case v.bad || v.nothing:
	default:
		s := v.storage
		s.ContainerPath, s.ReadOnly = strings.TrimSuffix(m.path, "/"), m.readOnly && s.HostPath != job.TmpfsHostPath
		if m.sub != "" && s.HostPath != job.TmpfsHostPath {
			s.HostPath += "/" + strings.Trim(m.sub, "/")
		}
		d.becomes(fmt.Sprintf("request.docker.storage[%d]", len(k.spec.Request.Docker.Storage)), n)
		k.spec.Request.Docker.Storage = append(k.spec.Request.Docker.Storage, s)
	}
}

// kubeQuantity reads a number with a decimal or binary suffix.
func kubeQuantity(s string) (float64, error) {
	scale := 1.0
	for suffix, x := range map[string]float64{"m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15,
		"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50} {
		if number, ok := strings.CutSuffix(s, suffix); ok && number != "" && strings.IndexByte("0123456789.", number[len(number)-1]) >= 0 {
			s, scale = number, x
			break
		}
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || x < 0 || x*scale > 1e18 || x != x {
		return 0, errors.New("is no amount")
	}
	return x * scale, nil
}
