package importer

import (
	"fmt"
	"path"
	"strings"

	"gbatch/internal/job"
)

// dstackVolumes is where network volumes are looked for: in the project's own
// storage.
const dstackVolumes = "/project/"

// dstackVolume is an entry of volumes.
type dstackVolume struct {
	names    []string
	instance string
	path     string
	at       *node // of the name or the instance's path
}

var dstackVolumeFields = []field[dstackVolume]{
	{"name", func(d *decoder, n *node, v *dstackVolume) { v.names, v.at = d.strs(n), n }, false},
	{"instance_path", func(d *decoder, n *node, v *dstackVolume) { v.instance, _ = d.str(n); v.at = n }, false},
	{"path", func(d *decoder, n *node, v *dstackVolume) { v.path, _ = d.str(n) }, true},
	{"optional", func(d *decoder, n *node, _ *dstackVolume) {
		if yes, ok := d.boolean(n); ok && yes {
			d.note(n, "is not used: the job fails if the directory is not there")
		}
	}, false},
}

// readDstackVolumes reads mounts as objects or as source:destination.
func readDstackVolumes(d *decoder, n *node, t *dstack) {
	d.elements(n, func(n *node) {
		v := dstackVolume{at: n}
		if n.kind == stringKind {
			source, destination, ok := strings.Cut(n.text, ":")
			if !ok || source == "" || destination == "" || strings.Contains(destination, ":") {
				d.problem(n, fmt.Sprintf("is %s, which is no mount", quote(n.text)), "write NAME:/PATH or /NODE/PATH:/PATH")
				return
			}
			if v.path = destination; strings.Contains(source, "/") {
				v.instance = source
			} else {
				v.names = []string{source}
			}
		} else {
			before := len(d.found)
			if !object(d, n, dstackVolumeFields, &v) || len(d.found) > before {
				return
			}
		}
		t.mount(d, n, v)
	})
}

func (t *dstack) mount(d *decoder, n *node, v dstackVolume) {
	docker := &t.sub.Spec.Request.Docker
	s := job.Storage{HostPath: v.instance, ContainerPath: v.path}
	switch {
	case (v.instance == "") == (len(v.names) == 0):
		d.problem(n, "must name a volume or a path of the node", `give one of "name" and "instance_path"`)
		return
	case v.instance != "" && !path.IsAbs(v.instance):
		d.problem(v.at, fmt.Sprintf("must be an absolute path of the node, is %s", quote(v.instance)), "")
		return
	case len(v.names) > 0 && (strings.ContainsAny(v.names[0], "/$ ") || strings.Trim(v.names[0], ".") == ""):
		d.problem(v.at, fmt.Sprintf("is %s, which is no name of a volume", quote(v.names[0])),
			"a volume of each rank has no equivalent: mount one, and use directories in it by GBATCH_RANK")
		return
	case len(v.names) > 0:
		s.HostPath = dstackVolumes + v.names[0]
		text := fmt.Sprintf("is read as the directory %s of the project's storage", s.HostPath)
		if len(v.names) > 1 {
			text += "; the other names are not used, since all nodes have the same storage"
		}
		d.note(v.at, text)
	}
	d.becomes(fmt.Sprintf("request.docker.storage[%d]", len(docker.Storage)), n)
	docker.Storage = append(docker.Storage, s)
}
