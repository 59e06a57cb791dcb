package submit

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gbatch/internal/cli"
	"gbatch/internal/cli/bring"
	"gbatch/internal/cli/exit"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// workdir is where a directory is in the container that --workdir-upload brings,
// if the job does not say where it works.
const workdir = "/workdir"

// bring has the controller keep what the job takes along from here, and names it
// in the job. Who only asks sends nothing: what it is called is known here.
func (j *ready) bring(ctx context.Context, a *cli.App, o *flags, file string) error {
	what := j.sub.Brought
	if o.WorkdirUpload != "" {
		docker := &j.sub.Spec.Request.Docker
		if docker.WorkingDir == "" {
			docker.WorkingDir = workdir
		}
		what = append(what, job.Brought{From: o.WorkdirUpload, Path: strings.TrimRight(docker.WorkingDir, "/")})
	}
	if len(what) == 0 {
		return nil
	}
	if j.sub.Spec.Gbatch == nil {
		j.sub.Spec.Gbatch = &job.Gbatch{}
	}
	for i, b := range what {
		from := b.From
		if i < len(j.sub.Brought) && b.Clone == nil {
			if from = beside(a, file, from); !o.mayBring(file, from) {
				return exit.Usagef("%s names %s, which does not lie where the file does: a job's file may be a stranger's, so say with --files-from DIR that it goes along", j.name, from)
			}
		}
		pack := func() (*bring.Packed, error) { return bring.Pack(ctx, from) }
		if b.Clone != nil {
			dir, err := os.MkdirTemp("", "gsubmit")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			if err := j.clone(ctx, a, o, b, dir); err != nil {
				return err
			}
			pack = func() (*bring.Packed, error) { return bring.PackAll(ctx, dir) }
		}
		in, err := takeAlong(ctx, a, from, pack, o.DryRun || o.Convert)
		if err != nil {
			return err
		}
		in.Path = b.Path
		j.sub.Spec.Gbatch.Inputs = append(j.sub.Spec.Gbatch.Inputs, in)
	}
	doc, err := j.sub.Document()
	if err != nil {
		return err
	}
	if _, err := job.Parse(doc); err != nil { // two at one path, for example
		return usage(j.name, err)
	}
	j.doc, j.sub.Brought = doc, nil
	return nil
}

// clone brings a repository that the job's file names here. With the user's own logins
// it is only if that is said: the file may be a stranger's.
func (j *ready) clone(ctx context.Context, a *cli.App, o *flags, b job.Brought, dir string) error {
	own := o.mayUseLogins(b.From)
	if !own && !strings.HasPrefix(b.From, "http") && !strings.HasPrefix(b.From, "git:") {
		return exit.Usagef("%s names the repository %s, which is cloned with your keys: a job's file may be a stranger's, so say with --files-from %s that it goes along", j.name, b.From, b.From)
	}
	a.Say("cloning the repository for %s", b.Path)
	err := bring.Clone(ctx, bring.Repository{Address: b.From, Branch: b.Clone.Branch, Hash: b.Clone.Hash, Own: o.mayUseLogins}, dir)
	var part *bring.PartError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &part) && !part.Own:
		return exit.Usagef("%s: %v\nYour own logins were not used for that part: if it needs them, name it with --files-from too, or what its address and the repository's begin with", j.name, err)
	case own:
		return exit.Usagef("%s: %v", j.name, err)
	}
	return exit.Usagef("%s: %v\nYour own logins were not used: if it needs them, say so with --files-from and its address", j.name, err)
}

// mayUseLogins says whether a repository may be read as its submitter: its address, or
// what it begins with, was named. A server may read "%2e%2e" as a way up.
func (o *flags) mayUseLogins(address string) bool {
	plain, err := url.PathUnescape(address)
	return err == nil && !strings.Contains(plain, "/..") && slices.ContainsFunc(o.FilesFrom, func(from string) bool {
		return address == from || strings.HasPrefix(address, strings.TrimSuffix(from, "/")+"/")
	})
}

// beside is a path of a job's file, which is relative to the file.
func beside(a *cli.App, file, path string) string {
	if rest, is := strings.CutPrefix(path, "~/"); is || path == "~" {
		home, _ := a.Env("HOME")
		return filepath.Join(home, rest)
	}
	if filepath.IsAbs(path) || file == "-" || file == "" {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}

// mayBring says whether a job's file may name something here.
func (o *flags) mayBring(file, path string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return true // it is not there, which is said elsewhere
	}
	for _, dir := range append([]string{filepath.Dir(file)}, o.FilesFrom...) {
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			continue
		}
		dir, derr := filepath.Abs(dir)
		to, terr := filepath.Abs(real)
		if below, err := filepath.Rel(dir, to); derr == nil && terr == nil && err == nil && filepath.IsLocal(below) {
			return true
		}
	}
	return false
}

// takeAlong sends what the controller has not of a directory or file.
func takeAlong(ctx context.Context, a *cli.App, from string, pack func() (*bring.Packed, error), stay bool) (job.Input, error) {
	p, err := pack()
	if errors.Is(err, fs.ErrNotExist) {
		return job.Input{}, exit.Usagef("there is no %s to bring along", from)
	}
	if err != nil {
		return job.Input{}, &exit.Error{Code: exit.Usage, Err: err}
	}
	id := p.ID()
	if !stay {
		if id, err = p.Send(ctx, client.Trees{Client: a.Client}, a.Say); err != nil {
			return job.Input{}, err
		}
	}
	return job.Input{URI: job.TreeURI(id, p.File)}, nil
}
