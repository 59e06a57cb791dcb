package job

import (
	"fmt"

	"gbatch/internal/document"
	"gbatch/oci/ref"
)

// Before is a program that runs to its end before the job's own begins, in an image of
// its own: the job's container has it as another root file system.
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
	GPUs        bool              `json:"gpus,omitempty"` // it has the job's GPUs
}

const maxBefore = 16 // programs before a job's own

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
}

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

func readBefore(d *decoder, n *node, g *Gbatch) {
	d.elements(n, maxBefore, func(_ int, n *node) {
		var b Before
		if document.Object(d, n, beforeFields, &b) {
			g.Before = append(g.Before, b)
		}
	})
}

// Before are the programs that run before the job's own.
func (s *Spec) Before() []Before { return s.gbatch().Before }

// BeforeSpec is the job as one of the programs before it has it.
func (s *Spec) BeforeSpec(i int) Spec {
	b, out, g := s.Before()[i], *s, s.gbatch()
	out.Request.Docker = Docker{
		Image: b.Image, Command: b.Command, Environment: b.Environment, Storage: b.Storage,
		WorkingDir: b.WorkingDir, User: b.User, GroupAdd: s.Request.Docker.GroupAdd,
	}
	g.Entrypoint, g.Files, g.Directories, g.Before, g.Terminal, g.Stdio = b.Entrypoint, b.Files, nil, nil, false, nil
	out.Gbatch = &g
	return out
}

// checkBefore finds what cannot be where programs run before the job's own.
func (d *decoder) checkBefore(gn *node, s *Spec) {
	g := s.Gbatch
	if len(g.Before) == 0 {
		return
	}
	if g.Launch != nil {
		d.ProblemAt(gn, "before", "cannot be combined with \"launch\"", "let the script do it")
	}
	if g.Runtime != "" {
		d.ProblemAt(gn, "before", "cannot be combined with \"runtime\": other runtimes run one program", "put what it does into the job's image")
	}
	for i, b := range g.Before {
		for k, f := range b.Files {
			for _, m := range b.Storage {
				if under(f.Path, m.ContainerPath) {
					d.ProblemAt(gn, "before", fmt.Sprintf("[%d].files[%d] is hidden by what is mounted on %s", i, k, document.Quote(m.ContainerPath)), "give one of them another place")
				}
			}
			if f.Secret != "" {
				s.checkSecretOf(d, gn, fmt.Sprintf("before[%d].files[%d]", i, k), f.Secret)
			}
		}
	}
}
