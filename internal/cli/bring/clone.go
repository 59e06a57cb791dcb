package bring

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Repository is one that lies elsewhere.
type Repository struct {
	Address string
	Branch  string                    // empty: its own
	Hash    string                    // of a commit; empty: the newest
	Own     func(address string) bool // git may use the logins and settings that its user has here
}

// Clone has the git of this machine make a working copy of a repository in dir, which
// is empty. What git knows of the repository is not kept.
//
// A file that names a repository may be a stranger's, who would read it in the job:
// unless it is the user's own, git gets what everybody gets. A repository names others
// as its parts, at any address: each of them is asked about like the first.
//
// It asks nobody for a password: there may be no one. Parts are only such as are fetched
// by the usual protocols: git knows one that runs a command.
func Clone(ctx context.Context, r Repository, dir string) error {
	own := r.Own(r.Address)
	clone := []string{"clone", "--quiet", "--no-recurse-submodules"}
	if r.Branch != "" {
		clone = append(clone, "--branch="+r.Branch)
	}
	if r.Hash == "" {
		clone = append(clone, "--depth=1")
	}
	_, err := git(ctx, append(clone, "--", r.Address, dir), own)
	if err == nil && r.Hash != "" {
		_, err = git(ctx, []string{"-C", dir, "checkout", "--quiet", "--detach", r.Hash, "--"}, own)
	}
	if err == nil {
		err = r.parts(ctx, dir, 1)
	}
	if err != nil {
		return fmt.Errorf("clone %s: %w", redacted(r.Address), err)
	}
	return forget(dir)
}

// forget removes what git knows of a working copy and of the repositories in it, whose
// files of that name lead to what the working copy's has.
func forget(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Name() != ".git" {
			return err
		}
		if err := os.RemoveAll(path); err != nil || !e.IsDir() {
			return err
		}
		return fs.SkipDir
	})
}

// git runs one command, and returns what it prints.
func git(ctx context.Context, args []string, own bool) (string, error) {
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Env = append(environment(os.Environ(), own), "GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=http:https:ssh:git")
	if !own { // neither helpers for logins, nor ~/.netrc, nor keys
		cmd.Env = append(cmd.Env, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "HOME="+os.DevNull, "XDG_CONFIG_HOME="+os.DevNull, "GIT_ASKPASS=", "SSH_ASKPASS=", "GIT_ALLOW_PROTOCOL=http:https:git")
	}
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	name := args[0]
	if name == "-C" { // and a directory
		name = args[2]
	}
	switch text := strings.TrimSpace(said.String()); {
	case errors.Is(err, exec.ErrNotFound):
		return "", errors.New("there is no git on this machine: install it, or clone the repository in the job's commands")
	case err != nil:
		return "", fmt.Errorf("git %s: %s", name, cmp.Or(text, err.Error()))
	}
	return out.String(), nil
}

// ofHere are the variables by which git's own programs, as those that a hook starts, are
// told of the repository that they work in. The clone is another one.
var ofHere = []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
	"GIT_NAMESPACE", "GIT_PREFIX", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE", "GIT_CONFIG"}

// ofMachine are the variables of git that say nothing of its user.
var ofMachine = []string{"GIT_EXEC_PATH", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH"}

// environment is what git gets of the environment: others of its variables may have
// logins too, as settings or client certificates.
func environment(here []string, own bool) []string {
	return slices.DeleteFunc(slices.Clone(here), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(ofHere, name) || !own && strings.HasPrefix(name, "GIT_") && !slices.Contains(ofMachine, name)
	})
}

// redacted is a repository's address without a password.
func redacted(from string) string {
	if u, err := url.Parse(from); err == nil {
		return u.Redacted()
	}
	return from
}
