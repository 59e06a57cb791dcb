package kubernetes

import (
	"fmt"
	"path"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/foreign"
	"gbatch/internal/job/sizes"
)

// volume is a volume of the pod, and what it becomes.
type volume struct {
	storage job.Storage // its containerPath is that of the mount
	files   []job.File  // a directory of these, which lie below it
	secret  string      // a secret that is not in the file: its keys are not known
	rdma    bool        // devices of fast networks
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
		if len(n.Kids) == 1 && n.Kids[0].Key == "name" { // a cluster takes it as one
			v = volume{storage: job.Storage{HostPath: job.ScratchHostPath, Volume: name}}
			d.Note(n, "has no kind, and is an emptyDir")
		}
		for _, kid := range n.Kids {
			switch kid.Key {
			case "name":
			case "hostPath":
				at, ok := required(d, kid, "path")
				if v = (volume{storage: job.Storage{HostPath: strings.TrimSuffix(at, "/")}, bad: !ok}); at == "/" {
					v.bad = true
					d.Problem(kid, "is the node's whole file system, which no job sees", "mount a path of the site's storage")
				}
				switch v.storage.HostPath {
				case "/dev/shm":
					v.storage = job.Storage{HostPath: job.ScratchHostPath, Volume: name, OfMemory: true}
					d.Note(kid, "is shared memory of the job's own, and not the node's")
				case "/dev/infiniband":
					v.rdma = true
				}
			case "persistentVolumeClaim":
				v = readVolumeClaim(d, kid)
			case "emptyDir":
				v = readEmptyDir(d, kid, name)
			case "configMap", "secret", "downwardAPI", "projected":
				v = k.filesOf(d, kid)
			default:
				d.Problem(kid, "is a kind of volume that is not known here", "use emptyDir, hostPath with a path of the site's storage, or persistentVolumeClaim: claimName data is the directory /project/data of the project's storage")
			}
		}
		k.volumes[name] = v
	})
}

// readVolumeClaim is a directory of the project's storage, which the claim itself may
// give for reading only.
func readVolumeClaim(d *decoder, n *node) volume {
	claim, ok := required(d, n, "claimName")
	if !ok {
		return volume{bad: true}
	}
	v := volume{storage: job.Storage{HostPath: volumeRoot + claim}}
	if x := n.Given("readOnly"); x != nil {
		v.storage.ReadOnly, _ = d.Boolean(x)
	}
	d.Note(n, "is understood as the directory of the project's storage "+volumeRoot+claim)
	return v
}

// required is the text of a key that must be there.
func required(d *decoder, n *node, key string) (string, bool) {
	x := n.Given(key)
	if x == nil {
		d.Missing(n, key, "")
		return "", false
	}
	return d.Str(x)
}

// readEmptyDir is a directory of the job's own, in memory if it says so.
func readEmptyDir(d *decoder, n *node, name string) volume {
	medium, size := "", int64(0)
	if m := n.Given("medium"); m != nil {
		medium, _ = d.Str(m)
	}
	if s := n.Given("sizeLimit"); s != nil {
		text, _ := d.Scalar(s)
		x, err := sizes.Quantity(text)
		if err != nil {
			d.Problem(s, fmt.Sprintf("is %s, which is no amount", document.Quote(text)), "")
		}
		size = int64(x)
	}
	v := volume{storage: job.Storage{HostPath: job.ScratchHostPath, Volume: name, OfMemory: medium == "Memory"}}
	switch {
	case size > 0 && v.storage.OfMemory:
		v.storage.SizeGB = wholeGiB(size)
	case size > 0:
		d.Note(n.Given("sizeLimit"), "is not used: all that the container writes has one bound, that of ephemeral-storage or the site's")
	}
	return v
}

type mountPoint struct {
	name, path, sub string
	readOnly        bool
}

var mountFields = []field[mountPoint]{
	{"name", func(d *decoder, n *node, m *mountPoint) { m.name, _ = d.Str(n) }, true},
	{"mountPath", func(d *decoder, n *node, m *mountPoint) {
		if m.path, _ = d.Str(n); m.path != "" { // a relative one is below the root
			m.path = path.Join("/", m.path)
		}
	}, true},
	{"readOnly", func(d *decoder, n *node, m *mountPoint) { m.readOnly, _ = d.Boolean(n) }, false},
	{"subPath", func(d *decoder, n *node, m *mountPoint) { m.sub, _ = d.Str(n) }, false},
	{"mountPropagation", foreign.Remark[mountPoint]("is not used: what is mounted later stays where it is"), false},
	{"subPathExpr", refuse[mountPoint]("use subPath"), false},
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
	case v.bad:
	case v.rdma:
		k.rdmaNodes = append(k.rdmaNodes, n)
	case v.secret != "" && m.sub == "":
		d.Problem(n, fmt.Sprintf("mounts the secret %s, which is not in the file: its keys are not known", document.Quote(v.secret)),
			"put its manifest into the file, behind a line ---, give its file: gsubmit --with FILE, or name its keys by items of the volume")
	case v.secret != "":
		k.mountFiles(d, n, m, []job.File{k.secretFile(d, fileSecret{of: v.secret, key: m.sub, at: n}, m.sub)})
	case v.files != nil:
		k.mountFiles(d, n, m, v.files)
	default:
		s := v.storage
		s.ContainerPath, s.ReadOnly = path.Clean(m.path), s.ReadOnly || m.readOnly
		switch sub := strings.Trim(m.sub, "/"); {
		case sub == "":
		case s.HostPath == job.ScratchHostPath:
			s.SubPath = sub
		default:
			s.HostPath += "/" + sub
		}
		d.Becomes(k.path(fmt.Sprintf("request.docker.storage[%d]", len(k.spec.Request.Docker.Storage))), n)
		k.spec.Request.Docker.Storage = append(k.spec.Request.Docker.Storage, s)
	}
}
