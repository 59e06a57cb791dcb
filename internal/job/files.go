package job

import (
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/document"
)

// File is a small file that is put into the container before its program starts.
type File struct {
	Path    string `json:"path"` // absolute
	Text    string `json:"text"`
	Secret  string `json:"secret,omitempty"`  // in place of Text: the job's secret of this name
	Program bool   `json:"program,omitempty"` // it can be run
}

const maxFiles = 200 // and as many directories, of one job

var fileFields = []field[File]{
	{"path", func(d *decoder, n *node, f *File) { d.absolute(n, &f.Path) }, true},
	{"text", func(d *decoder, n *node, f *File) { d.str(n, &f.Text, fileText) }, false},
	{"secret", func(d *decoder, n *node, f *File) { d.str(n, &f.Secret, SecretName) }, false},
	{"program", func(d *decoder, n *node, f *File) { d.boolean(n, &f.Program) }, false},
}

func fileText(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		return "has a zero byte: bring it by project storage or gbatch.inputs"
	}
	return ""
}

func readFiles(d *decoder, n *node, g *Gbatch) {
	at := map[string]int{}
	d.elements(n, maxFiles, func(i int, n *node) {
		var f File
		if !document.Object(d, n, fileFields, &f) || f.Path == "" {
			return
		}
		switch text := n.Given("text"); {
		case n.Given("secret") == nil && text == nil:
			d.Missing(n, "text", "or name a secret of the job, whose value the file has")
		case f.Secret != "" && text != nil && f.Text != "":
			d.Problem(text, "is given beside a secret", "give the file one of both")
		case f.Secret != "" && f.Program:
			d.ProblemAt(n, "program", "cannot be true of a secret: those are for reading only", "run it by its interpreter, as sh FILE")
		}
		if first, ok := at[f.Path]; ok {
			d.ProblemAt(n, "path", fmt.Sprintf("is %s, as that of entry [%d] is", document.Quote(f.Path), first), "give each file its own path")
		}
		at[f.Path] = i
		d.ownPath(n, f.Path)
		g.Files = append(g.Files, f)
	})
}

func readDirectories(d *decoder, n *node, g *Gbatch) {
	d.elements(n, maxFiles, func(_ int, n *node) {
		var dir string
		if d.absolute(n, &dir); dir == "" {
			return
		}
		if message, hint := checkStorage(Storage{HostPath: "/x", ContainerPath: dir}); message != "" {
			d.Problem(n, message, hint)
			return
		}
		g.Directories = append(g.Directories, dir)
	})
}

// checkFiles finds files that a mount would hide, and those of secrets that there are not.
func (d *decoder) checkFiles(gn *node, s *Spec) {
	for i, f := range s.Gbatch.Files {
		if f.Secret != "" {
			s.checkSecretOf(d, gn, fmt.Sprintf("files[%d]", i), f.Secret)
		}
		for k, m := range s.Request.Docker.Storage {
			if f.Path == m.ContainerPath {
				d.ProblemAt(gn, "files", fmt.Sprintf("[%d] is hidden by what request.docker.storage[%d] mounts there", i, k), "give one of them another place")
			}
		}
	}
}

// checkSecretOf wants a secret that something names among the job's.
func (s *Spec) checkSecretOf(d *decoder, gn *node, at, name string) {
	if !slices.ContainsFunc(s.Gbatch.Secrets, func(has Secret) bool { return has.Name == name }) {
		key, at, _ := strings.Cut(at, "[")
		d.ProblemAt(gn, key, fmt.Sprintf("[%s names the secret %s, which the job does not have", at, name), "add it to gbatch.secrets")
	}
}

// Files are those that the job brings with it.
func (s *Spec) Files() []File { return s.gbatch().Files }

// Link is where the file's text lies; "": it has its own.
func (f *File) Link() string {
	if f.Secret == "" {
		return ""
	}
	return SecretsDir + "/" + f.Secret
}
