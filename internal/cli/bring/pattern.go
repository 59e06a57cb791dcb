package bring

import (
	"path"
	"slices"
	"strings"
)

// A pattern is a line of a file in git's form, as gitignore(5) has it, and says of names
// in the file's directory and below whether they are left out.
type pattern struct {
	parts    []string // matched one by one from the file's directory on; "**" fits any number
	brings   bool     // it begins with !: what fits is brought
	dirs     bool     // it ends with /: it is for directories
	anywhere bool     // it has no other /: it fits in each directory
}

// verdict is what a pattern says of a name.
type verdict int

const (
	silent verdict = iota
	leaves
	brings
)

func parsePattern(line string) (p pattern) {
	line, p.brings = strings.CutPrefix(line, "!")
	if !strings.HasSuffix(line, `\ `) {
		line = strings.TrimRight(line, " ")
	}
	line, p.dirs = strings.CutSuffix(line, "/")
	p.anywhere = !strings.Contains(line, "/")
	p.parts = strings.Split(strings.TrimPrefix(line, "/"), "/")
	return p
}

// of says what the pattern says of a name, in parts from its file's directory on. What
// fits a directory is for all that is below it.
func (p *pattern) of(parts []string, isDir bool) verdict {
	for n := 1; n <= len(parts); n++ {
		if p.dirs && n == len(parts) && !isDir {
			break
		}
		if p.fits(parts[:n]) {
			if p.brings {
				return brings
			}
			return leaves
		}
	}
	return silent
}

func (p *pattern) fits(parts []string) bool {
	if p.anywhere {
		parts = parts[len(parts)-1:]
	}
	return fits(p.parts, parts)
}

// fits takes time by the product of both at most: after each "**" only the first place
// counts where what is between it and the next fits.
func fits(pattern, parts []string) bool {
	if last := len(pattern) - 1; last > 0 && pattern[last] == "**" { // what is inside, and not the directory itself
		return len(parts) > 0 && fits(append(slices.Clone(pattern[:last]), "*"), parts)
	}
	back, from := -1, 0 // the last "**", and where it was left
	i, k := 0, 0
	for k < len(parts) {
		switch {
		case i < len(pattern) && pattern[i] == "**":
			back, from = i, k
			i++
		case i < len(pattern) && fitsPart(pattern[i], parts[k]):
			i, k = i+1, k+1
		case back >= 0:
			from++
			i, k = back+1, from
		default:
			return false
		}
	}
	for i < len(pattern) && pattern[i] == "**" {
		i++
	}
	return i == len(pattern)
}

func fitsPart(pattern, part string) bool {
	ok, err := path.Match(pattern, part)
	return ok && err == nil
}
