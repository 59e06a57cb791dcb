package bring

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// Files that say what is left out. Those of git's form count in each directory,
// for what is below it.
const (
	ownIgnore    = ".gbatchignore"
	gitIgnore    = ".gitignore"
	dockerIgnore = ".dockerignore" // at the top alone, in Docker's form
)

// ignored is what is left out of a directory. What .gbatchignore says, also that
// something is brought (!NAME), wins over .gitignore, and that over
// .dockerignore. The directory .git is left out unless .gbatchignore brings it.
type ignored struct {
	dir    string
	own    map[string][]placed // by directory, with those of the directories above
	git    map[string][]placed
	docker *patternmatcher.PatternMatcher // nil: there is no such file
	err    error                          // the first that was met
}

func ignoredBelow(dir string) (*ignored, error) {
	g := &ignored{dir: dir, own: map[string][]placed{}, git: map[string][]placed{}}
	f, err := openText(filepath.Join(dir, dockerIgnore))
	if errors.Is(err, fs.ErrNotExist) {
		return g, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines, err := ignorefile.ReadAll(f)
	if err == nil {
		g.docker, err = patternmatcher.New(lines)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.Name(), err)
	}
	return g, nil
}

// openText opens a file of a directory that somebody else may have made: a pipe
// would be waited for.
func openText(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("%s is no file", path)
	}
	return f, nil
}

// skip says whether something is left out. A walk asks it for a directory before
// it asks for what is in it.
func (g *ignored) skip(name string, isDir bool) bool {
	parts := strings.Split(name, "/")
	dir := path.Dir(name)
	switch last(g.patterns(g.own, dir, ownIgnore), parts, isDir) {
	case leaves:
		return true
	case brings:
		return false
	}
	if name == ".git" {
		return true
	}
	switch last(g.patterns(g.git, dir, gitIgnore), parts, isDir) {
	case leaves:
		return true
	case brings:
		return false
	}
	if g.docker == nil {
		return false
	}
	out, err := g.docker.MatchesOrParentMatches(filepath.FromSlash(name))
	if err != nil {
		g.err = errors.Join(g.err, err)
	}
	return out && (!isDir || !g.docker.Exclusions()) // below it something may be brought again
}

// placed is a pattern, and how deep its file's directory is.
type placed struct {
	pattern
	depth int
}

// last is what the last pattern says that fits.
func last(patterns []placed, parts []string, isDir bool) verdict {
	for _, p := range slices.Backward(patterns) {
		if v := p.of(parts[p.depth:], isDir); v != silent {
			return v
		}
	}
	return silent
}

// patterns are those that hold for what is in a directory.
func (g *ignored) patterns(known map[string][]placed, dir, file string) []placed {
	if ps, ok := known[dir]; ok {
		return ps
	}
	var ps []placed
	depth := 0
	if dir != "." {
		above := g.patterns(known, path.Dir(dir), file)
		ps = above[:len(above):len(above)]
		depth = strings.Count(dir, "/") + 1
	}
	f, err := openText(filepath.Join(g.dir, filepath.FromSlash(dir), file))
	if err == nil {
		defer f.Close()
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			if line := lines.Text(); strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
				ps = append(ps, placed{parsePattern(line), depth})
			}
		}
		err = lines.Err()
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		g.err = errors.Join(g.err, err)
	}
	known[dir] = ps
	return ps
}
