package bring

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxParts is how deep parts of parts may lie. A server could make up ever more.
const maxParts = 20

// PartError is a part of a repository that could not be had.
type PartError struct {
	Address string
	Own     bool // the user's logins were used
	Err     error
}

func (e *PartError) Error() string { return fmt.Sprintf("its part %s: %v", redacted(e.Address), e.Err) }

func (e *PartError) Unwrap() error { return e.Err }

// parts gets the repositories that the one in dir names as its parts, and theirs.
func (r Repository) parts(ctx context.Context, dir string, depth int) error {
	list, err := partsOf(ctx, dir)
	if err != nil {
		return err
	}
	for _, p := range list {
		if depth > maxParts {
			return &PartError{Address: p.address, Err: fmt.Errorf("parts of parts lie more than %d deep", maxParts)}
		}
		update := []string{"-C", dir, "submodule", "--quiet", "update"}
		if r.Hash == "" {
			update = append(update, "--depth=1")
		}
		own := r.Own(p.address)
		if _, err := git(ctx, append(update, "--", p.path), own); err != nil {
			return &PartError{p.address, own, err}
		}
		at := filepath.Join(dir, p.path)
		if _, err := os.Lstat(filepath.Join(at, ".git")); err != nil {
			continue // the repository says that this one is not fetched
		}
		if err := r.parts(ctx, at, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// part is a repository that another names.
type part struct{ path, address string }

// partsOf are the parts of the repository in dir. Where they lie is told by git's index,
// in which no path leads out of the working copy.
func partsOf(ctx context.Context, dir string) (list []part, err error) {
	text, err := git(ctx, []string{"-C", dir, "ls-files", "-z", "--stage"}, false)
	if err != nil {
		return nil, err
	}
	paths := map[string]bool{}
	for entry := range strings.SplitSeq(text, "\x00") {
		if about, path, _ := strings.Cut(entry, "\t"); strings.HasPrefix(about, "160000 ") {
			paths[path] = true
		}
	}
	if len(paths) == 0 {
		return nil, nil
	}
	if _, err := git(ctx, []string{"-C", dir, "submodule", "--quiet", "init"}, false); err != nil { // works out addresses beside its own
		return nil, err
	}
	names, err := settings(ctx, dir, "path", "--file", filepath.Join(dir, ".gitmodules"))
	if err != nil {
		return nil, err
	}
	addresses, err := settings(ctx, dir, "url", "--local")
	if err != nil {
		return nil, err
	}
	for name, path := range names {
		if paths[path] {
			list = append(list, part{path, addresses[name]})
		}
	}
	slices.SortFunc(list, func(a, b part) int { return cmp.Compare(a.path, b.path) })
	return list, nil
}

// settings are those of the parts that have one name, by the part's.
func settings(ctx context.Context, dir, of string, from ...string) (map[string]string, error) {
	args := append([]string{"-C", dir, "config"}, from...)
	text, err := git(ctx, append(args, "--null", "--get-regexp", `^submodule\..*\.`+of+`$`), false)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for line := range strings.SplitSeq(text, "\x00") {
		key, value, _ := strings.Cut(line, "\n")
		out[strings.TrimSuffix(strings.TrimPrefix(key, "submodule."), "."+of)] = value
	}
	return out, nil
}
