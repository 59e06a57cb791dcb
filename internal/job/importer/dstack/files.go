package dstack

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
)

// homeDir is where ~ leads in the container of the user who is root there.
const homeDir = "/root"

// along is an entry of files or repos: what goes along with the task.
type along struct {
	local, path string
	remote      bool // it names a repository elsewhere
	commit      job.Commit
}

var alongFields = []field[along]{
	{"local_path", func(d *decoder, n *node, a *along) { a.local, _ = d.Str(n) }, false},
	{"path", func(d *decoder, n *node, a *along) { a.path, _ = d.Str(n) }, false},
	{"url", func(d *decoder, n *node, a *along) { a.local, _ = d.Str(n); a.remote = true }, false},
	{"branch", func(d *decoder, n *node, a *along) { a.commit.Branch, _ = d.Str(n) }, false},
	{"hash", readHash, false},
	{"if_exists", func(d *decoder, n *node, _ *along) { d.OneOf(n, "error", "skip") }, false},
}

// readHash reads which commit of a repository is wanted.
func readHash(d *decoder, n *node, a *along) {
	s, ok := d.Str(n)
	if ok && (len(s) < 4 || strings.Trim(s, "0123456789abcdefABCDEF") != "") {
		d.Problem(n, fmt.Sprintf("is %s, which is no hash of a commit", document.Quote(s)), "write as many of its hexadecimal digits as git log shows")
		return
	}
	a.commit.Hash = s
}

// elsewhere says whether a text names a repository by its address: as a URL, or as
// USER@HOST:PATH.
func elsewhere(s string) bool {
	host, _, _ := strings.Cut(s, "/")
	if strings.HasPrefix(s, "-") {
		return false // git would take it for an option
	}
	switch host {
	case "http:", "https:", "ssh:", "git:":
		return strings.HasPrefix(s[len(host):], "//")
	}
	user, _, ok := strings.Cut(host[min(1, len(host)):], "@") // which has a name
	return ok && strings.LastIndex(host, ":") > len("x")+len(user)+len("@")
}

// address takes ADDRESS or ADDRESS:PATH apart.
func address(s string) (from, to string, remote bool) {
	start := strings.IndexByte(s, ':') + 1
	if strings.HasPrefix(s[start:], "//") { // behind which a port may have a colon
		start += 2
		start += max(0, strings.IndexByte(s[start:], '/'))
	}
	if at := strings.IndexByte(s[start:], ':'); at >= 0 {
		return s[:start+at], s[start+at+1:], true
	}
	return s, "", true
}

// readFiles reads what of the author's machine goes along: files and directories,
// as LOCAL, LOCAL:PATH or objects.
func readFiles(d *decoder, n *node, t *task) { t.readAlong(d, n, false) }

// readRepos does the same of repositories. Those of the author's machine go along
// as they are there; others are cloned there before.
func readRepos(d *decoder, n *node, t *task) { t.readAlong(d, n, true) }

func (t *task) readAlong(d *decoder, n *node, repos bool) {
	d.Elements(n, func(n *node) {
		var a along
		before := d.Count()
		switch {
		case n.Kind == document.StringKind && elsewhere(n.Text):
			a.local, a.path, a.remote = address(n.Text)
		case n.Kind == document.StringKind:
			a.local, a.path, _ = strings.Cut(n.Text, ":")
		default:
			document.Object(d, n, alongFields, &a)
		}
		switch {
		case d.Count() > before:
			return
		case a.remote && (!elsewhere(a.local) || !repos):
			d.Problem(n, "names no repository that can be cloned", "below repos write its address: https://HOST/PATH or USER@HOST:PATH")
			return
		case !a.remote && a.commit != job.Commit{}:
			d.Problem(n, "names a branch or a commit of a directory, which goes along as it is", "check it out there, or name the repository's url")
			return
		case a.local == "" || strings.ContainsRune(a.path, ':') && !a.remote:
			d.Problem(n, "names no file or directory of your machine", "write LOCAL:PATH, as .:/workflow")
			return
		case a.path == "" && repos:
			a.path = "."
		case a.path == "":
			a.path = a.local
		}
		t.along = append(t.along, brought{a, n, repos})
	})
}

// brought is an entry with its place in the document.
type brought struct {
	along
	at   *node
	repo bool
}

// applyAlong says where in the container they go, when it is known where the task
// works: at its working directory, or below it. What is below another comes after
// that.
func (t *task) applyAlong(d *decoder) {
	docker := &t.sub.Spec.Request.Docker
	for _, b := range t.along {
		to := b.path
		if to == "~" || strings.HasPrefix(to, "~/") {
			if u := docker.User; u != "" && u != "root" && u != "0" {
				d.Problem(b.at, "goes to the home directory of another user than root, which is the image's matter", "write an absolute path")
				continue
			}
			to = homeDir + to[1:]
		}
		if !path.IsAbs(to) {
			docker.WorkingDir = cmp.Or(docker.WorkingDir, repoDir)
			to = path.Join(docker.WorkingDir, to)
			if to != path.Clean(docker.WorkingDir) && !strings.HasPrefix(to, strings.TrimSuffix(docker.WorkingDir, "/")+"/") {
				d.Problem(b.at, fmt.Sprintf("goes to %s, outside of the working directory", document.Quote(to)), "say with LOCAL:/PATH where in the container it is to be")
				continue
			}
		}
		brings := job.Brought{From: b.local, Path: path.Clean(to)}
		text := "goes along with the job, to " + brings.Path + ", without what .gitignore and .gbatchignore name"
		switch {
		case b.remote:
			brings.Clone = &b.commit
			text = "is cloned by the git of your machine when you submit it, and goes along with the job, to " + brings.Path + ", without .git"
		case b.repo:
			text += "; .git is left out, too"
		}
		t.sub.Brought = append(t.sub.Brought, brings)
		d.Note(b.at, text)
	}
	slices.SortStableFunc(t.sub.Brought, func(a, b job.Brought) int { return cmp.Compare(len(a.Path), len(b.Path)) })
}

// dindImage is what dstack runs where a task asks for Docker: its daemon is in it,
// and a program that starts that.
const dindImage = "dstackai/dind"

// readDocker takes a task that runs containers of its own.
func readDocker(d *decoder, n *node, t *task) {
	if yes, ok := d.Boolean(n); ok && yes {
		t.docker = true
		t.sub.Spec.Gbatch.Privileged = true
		d.Becomes("gbatch.privileged", n)
		d.Note(n, "needs a project and nodes that allow privileged jobs; the image is "+dindImage)
	}
}
