package kubernetes

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/foreign"
)

// variable is one variable of the container.
type variable struct {
	name, value string
	from        *node
}

var variableFields = []field[variable]{
	{"name", func(d *decoder, n *node, v *variable) { v.name, _ = d.Str(n) }, true},
	{"value", func(d *decoder, n *node, v *variable) { v.value, _ = d.Scalar(n) }, false},
	{"valueFrom", func(d *decoder, n *node, v *variable) { v.from = n }, false},
}

// readEnv reads the list of variables. A key of a secret becomes a secret of
// the variable's name, whose value comes with the submission.
func readEnv(d *decoder, n *node, c *container) {
	env := map[string]string{}
	d.Elements(n, func(n *node) {
		var v variable
		if !document.Object(d, n, variableFields, &v) || v.name == "" {
			return
		}
		if _, ok := env[v.name]; ok {
			d.Problem(n, fmt.Sprintf("sets %s a second time", document.Quote(v.name)), "keep one of them")
			return
		}
		d.Becomes(document.Member("request.docker.environment", v.name), n)
		if v.from != nil {
			readValueFrom(d, v, c)
			return
		}
		if foreign.IsTaskVariable(v.name) {
			d.Problem(n, fmt.Sprintf("sets %s, which is set for every task", v.name), "remove it")
			return
		}
		env[v.name] = c.expand([]string{v.value}, env)[0]
	})
	if len(env) > 0 {
		c.spec.Request.Docker.Environment = env
	}
}

func readValueFrom(d *decoder, v variable, c *container) {
	key := v.from.Given("secretKeyRef")
	field := v.from.Given("fieldRef")
	switch {
	case key != nil:
		if slices.ContainsFunc(c.spec.Gbatch.Secrets, func(s job.Secret) bool { return s.Name == v.name }) {
			return
		}
		c.spec.Gbatch.Secrets = append(c.spec.Gbatch.Secrets, job.Secret{Name: v.name})
		d.Note(v.from, fmt.Sprintf("is a secret whose value comes with the job: gsubmit --secret %s", v.name))
	case field != nil:
		path, _ := d.Str(orNull(field.Given("fieldPath")))
		switch {
		case strings.Contains(path, "batch.kubernetes.io/job-completion-index") && foreign.IsTaskVariable(v.name):
		case strings.Contains(path, "batch.kubernetes.io/job-completion-index"):
			d.Problem(v.from, "gives the task's index another name than JOB_COMPLETION_INDEX", "use that one, which is always set")
		default:
			d.Problem(v.from, fmt.Sprintf("is the field %s, which is not known here", document.Quote(path)), "use GBATCH_JOB_NAME, GBATCH_JOB_NUMBER and the other variables that every job has")
		}
	default:
		d.Problem(v.from, "is not supported", "write the value, or make it a secret")
	}
}

func orNull(n *node) *node {
	if n == nil {
		return &node{}
	}
	return n
}

// volume is a volume of the pod, and what it becomes.
type volume struct {
	storage job.Storage // its containerPath is that of the mount
	nothing bool        // it needs no mount: the container's own root will do
	bad     bool        // told already
}

// volumeRoot is where volumes are that have a name and no path: in the
// project's storage, as dstack's are.
const volumeRoot = "/project/"

func readVolumes(d *decoder, n *node, k *manifest) {
	d.Elements(n, func(n *node) {
		name := ""
		if x := n.Given("name"); x != nil {
			name, _ = d.Str(x)
		}
		v := volume{bad: true}
		if _, twice := k.volumes[name]; twice || len(n.Kids) > 2 {
			d.Problem(n, fmt.Sprintf("is the second volume %s, or has several kinds", document.Quote(name)), "give each volume its own name and one kind")
		}
		for _, kid := range n.Kids {
			switch kid.Key {
			case "name":
			case "hostPath":
				if p := kid.Given("path"); p != nil {
					path, ok := d.Str(p)
					v = volume{storage: job.Storage{HostPath: strings.TrimSuffix(path, "/")}, bad: !ok}
				}
			case "persistentVolumeClaim":
				if p := kid.Given("claimName"); p != nil {
					claim, ok := d.Str(p)
					v = volume{storage: job.Storage{HostPath: volumeRoot + claim}, bad: !ok}
					d.Note(kid, "is understood as the directory of the project's storage "+volumeRoot+claim)
				}
			case "emptyDir":
				v = readEmptyDir(d, kid)
			case "configMap", "secret", "projected", "downwardAPI":
				d.Problem(kid, "is not supported", "bring files by project storage, or by gbatch.inputs and gbatch.secrets of a native job")
			default:
				d.Problem(kid, "is a kind of volume that is not known here", "use hostPath with a path of the site's storage, persistentVolumeClaim or emptyDir")
			}
		}
		k.volumes[name] = v
	})
}

// readEmptyDir is memory if it says so; on disk the container's own root, which
// is as empty and as short-lived, will do.
func readEmptyDir(d *decoder, n *node) volume {
	medium, size := "", int64(0)
	if m := n.Given("medium"); m != nil {
		medium, _ = d.Str(m)
	}
	if s := n.Given("sizeLimit"); s != nil {
		text, _ := d.Scalar(s)
		x, err := parseQuantity(text)
		if err != nil {
			d.Problem(s, fmt.Sprintf("is %s, which is no amount", document.Quote(text)), "")
		}
		size = int64(x)
	}
	if medium != "Memory" {
		return volume{nothing: true}
	}
	if size == 0 {
		d.Note(n, "has no sizeLimit: it holds 1 GiB")
	}
	return volume{storage: job.Storage{HostPath: job.TmpfsHostPath, SizeGB: wholeGiB(size)}}
}

type mountPoint struct {
	name, path, sub string
	readOnly        bool
}

var mountFields = []field[mountPoint]{
	{"name", func(d *decoder, n *node, m *mountPoint) { m.name, _ = d.Str(n) }, true},
	{"mountPath", func(d *decoder, n *node, m *mountPoint) { m.path, _ = d.Str(n) }, true},
	{"readOnly", func(d *decoder, n *node, m *mountPoint) { m.readOnly, _ = d.Boolean(n) }, false},
	{"subPath", func(d *decoder, n *node, m *mountPoint) { m.sub, _ = d.Str(n) }, false},
	{"mountPropagation", foreign.Remark[mountPoint]("is not used: what is mounted later stays where it is"), false},
	{"subPathExpr", foreign.Refuse[mountPoint]("use subPath"), false},
}

func readMount(d *decoder, n *node, k *manifest) {
	var m mountPoint
	if !document.Object(d, n, mountFields, &m) {
		return
	}
	v, ok := k.volumes[m.name]
	switch {
	case !ok:
		d.Problem(n, fmt.Sprintf("mounts %s, which is no volume of this job", document.Quote(m.name)), "")
	case v.bad || v.nothing:
	default:
		s := v.storage
		s.ContainerPath, s.ReadOnly = strings.TrimSuffix(m.path, "/"), m.readOnly && s.HostPath != job.TmpfsHostPath
		if m.sub != "" && s.HostPath != job.TmpfsHostPath {
			s.HostPath += "/" + strings.Trim(m.sub, "/")
		}
		d.Becomes(fmt.Sprintf("request.docker.storage[%d]", len(k.spec.Request.Docker.Storage)), n)
		k.spec.Request.Docker.Storage = append(k.spec.Request.Docker.Storage, s)
	}
}

// parseQuantity reads a number with a decimal or binary suffix.
func parseQuantity(s string) (float64, error) {
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
