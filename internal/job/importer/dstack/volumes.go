package dstack

import (
	"fmt"
	"path"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
)

// volumeRoot is where network volumes are looked for: in the project's own
// storage.
const volumeRoot = "/project/"

// volume is an entry of volumes.
type volume struct {
	names    []string
	instance string
	path     string
	at       *node // of the name or the instance's path
}

var volumeFields = []field[volume]{
	{"name", func(d *decoder, n *node, v *volume) { v.names, v.at = d.Strs(n), n }, false},
	{"instance_path", func(d *decoder, n *node, v *volume) { v.instance, _ = d.Str(n); v.at = n }, false},
	{"path", func(d *decoder, n *node, v *volume) { v.path, _ = d.Str(n) }, true},
	{"optional", func(d *decoder, n *node, _ *volume) {
		if yes, ok := d.Boolean(n); ok && yes {
			d.Note(n, "is not used: the job fails if the directory is not there")
		}
	}, false},
}

// readVolumes reads mounts as objects or as source:destination.
func readVolumes(d *decoder, n *node, t *task) {
	d.Elements(n, func(n *node) {
		v := volume{at: n}
		if n.Kind == document.StringKind {
			source, destination, ok := strings.Cut(n.Text, ":")
			if !ok || source == "" || destination == "" || strings.Contains(destination, ":") {
				d.Problem(n, fmt.Sprintf("is %s, which is no mount", document.Quote(n.Text)), "write NAME:/PATH or /NODE/PATH:/PATH")
				return
			}
			if v.path = destination; strings.Contains(source, "/") {
				v.instance = source
			} else {
				v.names = []string{source}
			}
		} else {
			before := d.Count()
			if !document.Object(d, n, volumeFields, &v) || d.Count() > before {
				return
			}
		}
		t.mount(d, n, v)
	})
}

// ofEachRank has the number of a node that a volume's name has in it be put in there.
func (t *task) ofEachRank(name string) string {
	return t.interpolation.ReplaceAllStringFunc(name, func(m string) string {
		switch t.interpolation.FindStringSubmatch(m)[1] {
		case "dstack.node_rank", "dstack.job_num":
			return job.RankWord
		}
		return m
	})
}

func (t *task) mount(d *decoder, n *node, v volume) {
	docker := &t.sub.Spec.Request.Docker
	for i, name := range v.names {
		v.names[i] = t.ofEachRank(name)
	}
	v.instance = t.ofEachRank(v.instance)
	s := job.Storage{HostPath: v.instance, ContainerPath: v.path}
	switch {
	case (v.instance == "") == (len(v.names) == 0):
		d.Problem(n, "must name a volume or a path of the node", `give one of "name" and "instance_path"`)
		return
	case v.instance != "" && !path.IsAbs(v.instance):
		d.Problem(v.at, fmt.Sprintf("must be an absolute path of the node, is %s", document.Quote(v.instance)), "")
		return
	case len(v.names) > 0 && (strings.ContainsAny(v.names[0], "/$ ") || strings.Trim(v.names[0], ".") == ""):
		d.Problem(v.at, fmt.Sprintf("is %s, which is no name of a volume", document.Quote(v.names[0])),
			"write a name, with ${{ dstack.node_rank }} in it for a volume of each node")
		return
	case len(v.names) > 0:
		s.HostPath = volumeRoot + v.names[0]
		text := fmt.Sprintf("is read as the directory %s of the project's storage", s.HostPath)
		if len(v.names) > 1 {
			text += "; the other names are not used, since all nodes have the same storage"
		}
		d.Note(v.at, text)
	}
	d.Becomes(fmt.Sprintf("request.docker.storage[%d]", len(docker.Storage)), n)
	docker.Storage = append(docker.Storage, s)
}
