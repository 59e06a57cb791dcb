package job

import (
	"fmt"
	"slices"

	"gbatch/internal/document"
	"gbatch/oci/ref"
)

// Before is a program of the job's in an image of its own: one that runs to its end before
// the job's own begins, a sidecar, or one that runs beside it. The job's container has it as
// another root file system.
type Before struct {
	Name        string            `json:"name"`
	Image       string            `json:"image"`                // without credentials: those of the job's own image are used in the same registry
	Entrypoint  []string          `json:"entrypoint,omitempty"` // instead of the image's
	Command     Command           `json:"command"`
	Environment map[string]string `json:"environment,omitempty"` // the job's own is not there
	Storage     []Storage         `json:"storage,omitempty"`     // likewise
	WorkingDir  string            `json:"workingDir,omitempty"`
	User        string            `json:"user,omitempty"`
	Files       []File            `json:"files,omitempty"`
	GPUs        bool              `json:"gpus,omitempty"`    // it has the job's GPUs
	OwnGPUs     int               `json:"ownGpus,omitempty"` // so many of the job's, which no other program has at that time

	// Sidecar is for one of Gbatch.Before that goes on while what follows runs, is begun
	// again when it ends, and is ended when the others have.
	Sidecar bool `json:"sidecar,omitempty"`
	// MemoryMB bounds its memory within the job's, MiB; 0: they have one bound. Of those that
	// run beside others alone.
	MemoryMB int `json:"memoryMb,omitempty"`
}

const maxBefore = 16 // programs before a job's own, and beside it

var beforeFields = []field[Before]{
	{"name", func(d *decoder, n *node, b *Before) { d.str(n, &b.Name, word("-._")) }, true},
	{"image", readBeforeImage, true},
	{"entrypoint", func(d *decoder, n *node, b *Before) {
		var g Gbatch
		readEntrypoint(d, n, &g)
		b.Entrypoint = g.Entrypoint
	}, false},
	{"command", func(d *decoder, n *node, b *Before) {
		var c Docker
		readCommand(d, n, &c)
		b.Command = c.Command
	}, false},
	{"environment", func(d *decoder, n *node, b *Before) {
		var c Docker
		readEnvironment(d, n, &c)
		b.Environment = c.Environment
	}, false},
	{"storage", func(d *decoder, n *node, b *Before) {
		var c Docker
		readMounts(d, n, &c, storageFields)
		b.Storage = c.Storage
	}, false},
	{"workingDir", func(d *decoder, n *node, b *Before) { d.absolute(n, &b.WorkingDir) }, false},
	{"user", func(d *decoder, n *node, b *Before) { d.str(n, &b.User, dockerUser) }, false},
	{"files", func(d *decoder, n *node, b *Before) {
		var g Gbatch
		readFiles(d, n, &g)
		b.Files = g.Files
	}, false},
	{"gpus", func(d *decoder, n *node, b *Before) { d.boolean(n, &b.GPUs) }, false},
	{"ownGpus", func(d *decoder, n *node, b *Before) { d.integer(n, &b.OwnGPUs, 1, maxGPUs) }, false},
	{"memoryMb", func(d *decoder, n *node, b *Before) { d.integer(n, &b.MemoryMB, leastMemoryMB, maxMemoryGB*1024) }, false},
}

// leastMemoryMB is what a container needs to begin.
const leastMemoryMB = 8

// sidecarFields are those of a program of Gbatch.Before.
var sidecarFields = slices.Concat(beforeFields, []field[Before]{
	{"sidecar", func(d *decoder, n *node, b *Before) { d.boolean(n, &b.Sidecar) }, false},
})

// readBeforeImage takes no login: a job has one, which is split off its own image.
func readBeforeImage(d *decoder, n *node, b *Before) {
	had := d.creds
	var c Docker
	readImage(d, n, &c)
	b.Image = c.Image
	if r, creds, err := ref.Parse(n.Text); n.Kind == document.StringKind && err == nil && creds != nil {
		b.Image = r.String()
		d.Problem(n, "has a login in front of it", "write the login in front of request.docker.image: it is used for all images of that registry")
	}
	d.creds = had
}

func readBefore(d *decoder, n *node, g *Gbatch) { g.Before = readPrograms(d, n, sidecarFields) }
func readBeside(d *decoder, n *node, g *Gbatch) { g.Beside = readPrograms(d, n, beforeFields) }

func readPrograms(d *decoder, n *node, fields []field[Before]) (list []Before) {
	d.elements(n, maxBefore, func(_ int, n *node) {
		var b Before
		if document.Object(d, n, fields, &b) {
			list = append(list, b)
		}
	})
	return list
}

// Programs are the job's programs but its own: those before it, then those beside it.
func (s *Spec) Programs() []Before {
	g := s.gbatch()
	return slices.Concat(g.Before, g.Beside)
}

// ProgramSpec is the job as one of Programs has it.
func (s *Spec) ProgramSpec(b *Before) Spec {
	out, g := *s, s.gbatch()
	out.Request.Docker = Docker{
		Image: b.Image, Command: b.Command, Environment: b.Environment, Storage: b.Storage,
		WorkingDir: b.WorkingDir, User: b.User, GroupAdd: s.Request.Docker.GroupAdd,
	}
	g.Entrypoint, g.Files, g.Directories, g.Before, g.Beside, g.Terminal, g.Stdio = b.Entrypoint, b.Files, nil, nil, nil, false, nil
	out.Gbatch = &g
	return out
}

// checkPrograms finds what cannot be where the job has programs but its own.
func (d *decoder) checkPrograms(gn *node, s *Spec) {
	g := s.Gbatch
	d.checkList(gn, s, "before", g.Before)
	d.checkList(gn, s, "beside", g.Beside)
	d.checkDivision(gn, s)
	if g.FailTogether && len(g.Beside) == 0 {
		d.ProblemAt(gn, "failTogether", "says what ends with what, and nothing is in \"beside\"", "remove it")
	}
	if !s.Several() {
		return
	}
	if g.Terminal {
		d.ProblemAt(gn, "terminal", "cannot be had where several programs run at once: they share one log", "enter the job by gexec")
	}
	names := map[string]bool{}
	for _, b := range s.Programs() {
		if names[b.Name] {
			d.Problem(gn, fmt.Sprintf("has two programs of the name %s in before and beside", document.Quote(b.Name)), "give each a name of its own")
		}
		names[b.Name] = true
	}
}

// Several says whether several programs of the job run at the same time in a rank.
func (s *Spec) Several() bool {
	g := s.gbatch()
	return len(g.Beside) > 0 || slices.ContainsFunc(g.Before, func(b Before) bool { return b.Sidecar })
}

func (d *decoder) checkList(gn *node, s *Spec, key string, list []Before) {
	if len(list) == 0 {
		return
	}
	if s.Gbatch.Launch != nil {
		d.ProblemAt(gn, key, "cannot be combined with \"launch\"", "let the script do it")
	}
	for i, b := range list {
		memory := s.Request.Resources.CPUMemoryGB
		switch {
		case b.MemoryMB > 0 && key == "before" && !b.Sidecar:
			d.ProblemAt(gn, key, fmt.Sprintf("[%d] has a memoryMb, and runs alone: its memory is the job's", i), "remove it")
		case memory > 0 && b.MemoryMB > memory*1024:
			d.ProblemAt(gn, key, fmt.Sprintf("[%d] has a memoryMb of more than request.resources.cpuMemoryGb, %d", i, memory), "raise cpuMemoryGb, which is that of all together")
		}
		for k, f := range b.Files {
			for _, m := range b.Storage {
				if f.Path == m.ContainerPath {
					d.ProblemAt(gn, key, fmt.Sprintf("[%d].files[%d] is hidden by what is mounted there", i, k), "give one of them another place")
				}
			}
			if f.Secret != "" {
				s.checkSecretOf(d, gn, fmt.Sprintf("%s[%d].files[%d]", key, i, k), f.Secret)
			}
		}
	}
}
