package job

import (
	"cmp"
	"strings"

	"gbatch/internal/document"
)

// GPULab's older form, version 1, becomes a native job here and not in an
// importer of its own, because its values follow the same rules and share the readers of
// the native tables. A value that version 2 has no word for is refused or noted.

// ParseV1 reads a GPULab version 1 document, the one with "jobDefinition". Its
// defaults are one core, no GPU and 1 GiB. The error is a Problems.
func ParseV1(data []byte) (Submission, error) {
	n, err := readDocument(data)
	if err != nil {
		return Submission{}, err
	}
	d := newDecoder(&version1)
	s := Spec{Request: Request{Resources: Resources{CPUs: 1, CPUMemoryGB: 1}}}
	if document.Object(d, n, v1Fields, &s) && s.Name == "" {
		s.Name = "unnamed"
	}
	if ps := d.Problems(); ps != nil {
		return Submission{}, ps
	}
	converted := Note{Message: "was converted from GPULab version 1"}
	return Submission{Spec: s, Registry: d.creds, Notes: append([]Note{converted}, d.Notes()...)}, nil
}

var v1Fields = []field[Spec]{
	{"jobDefinition", readDefinition, true},
	{"name", func(d *decoder, n *node, s *Spec) { d.str(n, &s.Name, plain(1, maxNameRunes)) }, false},
	{"description", func(d *decoder, n *node, s *Spec) { d.str(n, &s.Description, description) }, false},
	{"owner", readOwner, false},
	{"deploymentEnvironment", readDeployment, false},
}

var definitionFields = []field[Spec]{
	{"name", func(d *decoder, n *node, s *Spec) { d.str(n, &s.Name, plain(0, maxNameRunes)) }, false},
	{"description", func(d *decoder, n *node, s *Spec) { d.str(n, &s.Description, description) }, false},
	{"clusterId", readClusters, false},
	{"resources", func(d *decoder, n *node, s *Spec) { document.Object(d, n, v1ResourcesFields, &s.Request.Resources) }, false},
	{"dockerImage", inDocker(readImage), true},
	{"command", inDocker(readCommand), false},
	{"environment", inDocker(readEnvironment), false},
	{"jobDataLocations", inDocker(func(d *decoder, n *node, c *Docker) { readMounts(d, n, c, locationFields) }), false},
	{"portMappings", inDocker(readPorts), false},
	{"projectGidVariableName", inDocker(func(d *decoder, n *node, c *Docker) { d.str(n, &c.ProjectGIDVariable, variableName) }), false},
	{"workingDir", inDocker(func(d *decoder, n *node, c *Docker) { d.absolute(n, &c.WorkingDir) }), false},
	{"dockerUser", inDocker(func(d *decoder, n *node, c *Docker) { d.str(n, &c.User, dockerUser) }), false},
	{"dockerGroupAdd", inDocker(func(d *decoder, n *node, c *Docker) { d.strs(n, &c.GroupAdd, nameOrID) }), false},
	{"ssh_pubkeys", func(d *decoder, n *node, s *Spec) {
		var e Extra
		if d.sshKeys(n, &e); !empty(e) {
			s.Request.Extra = &e
		}
	}, false},
	{"jobType", func(d *decoder, n *node, _ *Spec) { d.Note(n, "is not used: every job is a batch job") }, false},
	{"userUidVariableName", func(d *decoder, n *node, _ *Spec) { d.Note(n, "is not used: it has no effect in GPULab either") }, false},
}

var v1ResourcesFields = []field[Resources]{
	{"gpus", func(d *decoder, n *node, r *Resources) { readGPUs(d, unquoted(n), r) }, false},
	{"cpuCores", func(d *decoder, n *node, r *Resources) { d.integer(unquoted(n), &r.CPUs, 1, maxCPUs) }, false},
	{"systemMemory", func(d *decoder, n *node, r *Resources) {
		var mb int
		d.integer(unquoted(n), &mb, 1, maxMemoryGB*1024)
		r.CPUMemoryGB = (mb + 1023) / 1024
	}, false},
	{"gpuModel", func(d *decoder, n *node, r *Resources) { d.strs(n, &r.GPUModel, plain(2, 128)) }, false},
	{"minCudaVersion", func(d *decoder, n *node, r *Resources) {
		d.integer(unquoted(n), &r.MinCudaVersion, 0, maxCudaVersion)
	}, false},
}

var locationFields = []field[Storage]{
	{"mountPoint", func(d *decoder, n *node, s *Storage) { d.absolute(n, &s.ContainerPath) }, false},
	{"sharePath", readHostPath, false},
	{"protocol", noteShare, false},
	{"shareHost", noteShare, false},
}

// inDocker makes a reader of the container one of the whole job.
func inDocker(read func(*decoder, *node, *Docker)) func(*decoder, *node, *Spec) {
	return func(d *decoder, n *node, s *Spec) { read(d, n, &s.Request.Docker) }
}

// readDefinition keeps the name that the document gives outside, which wins.
func readDefinition(d *decoder, n *node, s *Spec) {
	name, text := s.Name, s.Description
	if document.Object(d, n, definitionFields, s) {
		checkGIDVariable(d, n, &s.Request.Docker)
	}
	s.Name = cmp.Or(name, s.Name)
	s.Description = cmp.Or(text, s.Description)
}

// readClusters takes the first of a list, as GPULab's own conversion does.
func readClusters(d *decoder, n *node, s *Spec) {
	if n.Kind != document.ArrayKind {
		d.integer(unquoted(n), &s.Request.Resources.ClusterID, 0, maxClusterID)
		return
	}
	if len(n.Kids) > 1 {
		d.Note(n, "names several clusters, of which the first is used")
	}
	d.elements(n, maxListEntries, func(i int, n *node) {
		var id int
		if d.integer(unquoted(n), &id, 0, maxClusterID); i == 0 {
			s.Request.Resources.ClusterID = id
		}
	})
}

func noteShare(d *decoder, n *node, _ *Storage) {
	d.Note(n, "is not used: which server holds the storage is set on the nodes")
}

// unquoted is n with a number in quotes taken as that number, as GPULab does for
// its own fields.
func unquoted(n *node) *node {
	if n.Kind != document.StringKind || n.Text == "" || strings.Trim(n.Text, "0123456789") != "" {
		return n
	}
	number := *n
	number.Kind = document.NumberKind
	return &number
}
