package slurm

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"gbatch/internal/job"
	"gbatch/oci/ref"
)

// srunOptions takes the first image that a step asks for as the job's own, where it has
// none, and what steps mount, so that the job has it. What only the running script knows,
// srun itself looks at.
func (s *script) srunOptions(call *syntax.CallExpr, known constants) {
	line := int(call.Pos().Line())
	for i := 1; i < len(call.Args); i++ {
		word, whole := known.text(call.Args[i].Parts)
		if !strings.HasPrefix(word, "-") {
			return // the program
		}
		name, value, given := strings.Cut(word, "=")
		if !given && s.takesNext(name) && i+1 < len(call.Args) {
			i++
			value, whole = known.text(call.Args[i].Parts)
		}
		if !whole || value == "" {
			continue
		}
		switch name {
		case "--container-image":
			s.imageOfStep(line, value)
		case "--container-mounts":
			s.mountsOfStep(line, value)
		}
	}
}

// takesNext says whether an option that has no value in its own word has it in the next.
func (s *script) takesNext(name string) bool {
	opt, ok := s.known.meant(name)
	return ok && opt.needsValue() || slices.Contains([]string{"--mpi", "-r", "-W"}, name)
}

// imageOfStep is the job's where it has none yet.
func (s *script) imageOfStep(line int, value string) {
	const name = "--container-image"
	_, _, err := ref.Parse(Image(value))
	switch {
	case squashed(value):
		s.noImage = true
		s.problem(line, name, notSquashed, "")
	case err != nil:
		s.problem(line, name, "is no image reference", "write "+ref.Forms)
	case s.image == "":
		s.image = value
		if s.o.Image == "" {
			s.note(line, name, "of srun is the image of the whole job, in which the script runs too")
		}
	case Image(value) != Image(s.image):
		s.note(line, name, "of srun is another image than the job's: each node of the step pulls it when the step begins")
	}
}

// mountsOfStep are the job's, once.
func (s *script) mountsOfStep(line int, value string) {
	all, err := Mounts(value)
	if err != nil {
		s.problem(line, "--container-mounts", err.Error(), "")
	}
	have := &s.spec.Request.Docker.Storage
	for _, m := range all {
		if slices.ContainsFunc(*have, func(h job.Storage) bool { return h != m && h.ContainerPath == m.ContainerPath }) {
			m.ContainerPath = m.HostPath // where srun finds it, to show it in the step where that says
		}
		if !slices.Contains(*have, m) {
			*have = append(*have, m)
		}
	}
}

// notSquashed is why a file of enroot's is no image here.
const notSquashed = "squashed images are not read: name an image in a registry, or oci:/PATH of a layout on the nodes"

func squashed(image string) bool {
	return strings.HasPrefix(image, "/") || strings.HasPrefix(image, ".") || strings.HasSuffix(image, ".sqsh")
}

// constants are the variables of a script that have one value wherever they are set, and
// those that it sets to several, or to what is not known before it runs.
type constants struct {
	values   map[string]string
	changing map[string]bool
}

func constantsOf(file *syntax.File) constants {
	c := constants{map[string]string{}, map[string]bool{}}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch x := n.(type) {
		case *syntax.CallExpr:
			if len(x.Args) == 0 { // else they are that command's alone
				c.assign(x.Assigns)
			} else if x.Args[0].Lit() == "read" {
				for _, w := range x.Args[1:] {
					c.changing[w.Lit()] = true
				}
			}
		case *syntax.DeclClause:
			c.assign(x.Args)
		case *syntax.WordIter:
			c.changing[x.Name.Value] = true
		}
		return true
	})
	return c
}

func (c constants) assign(list []*syntax.Assign) {
	for _, a := range list {
		if a.Name == nil || a.Naked { // export NAME
			continue
		}
		name, value, whole := a.Name.Value, "", !a.Append && a.Index == nil && a.Array == nil
		if whole && a.Value != nil {
			value, whole = c.text(a.Value.Parts)
		}
		if was, again := c.values[name]; !whole || again && was != value {
			c.changing[name] = true
		}
		c.values[name] = value
	}
}

// text is a word as the shell has it, as far as that is known before it runs.
func (c constants) text(parts []syntax.WordPart) (text string, whole bool) {
	var b strings.Builder
	for _, p := range parts {
		value, ok := "", false
		switch x := p.(type) {
		case *syntax.Lit:
			value, ok = unescaped(x.Value), !strings.ContainsAny(x.Value, "*?[~{")
		case *syntax.SglQuoted:
			value, ok = x.Value, !x.Dollar
		case *syntax.DblQuoted:
			value, ok = c.text(x.Parts)
		case *syntax.ParamExp:
			value, ok = c.value(x)
		}
		b.WriteString(value)
		if !ok {
			return b.String(), false
		}
	}
	return b.String(), true
}

// value is that of $NAME and ${NAME}, and of ${NAME:-TEXT} where the script does not
// set it itself.
func (c constants) value(x *syntax.ParamExp) (string, bool) {
	if x.Param == nil || x.Excl || x.Length || x.Width || x.Index != nil || x.Slice != nil || x.Repl != nil || x.Names != 0 {
		return "", false
	}
	if c.changing[x.Param.Value] {
		return "", false
	}
	value, ok := c.values[x.Param.Value]
	if x.Exp == nil {
		return value, ok
	}
	if op := x.Exp.Op; op != syntax.DefaultUnset && op != syntax.DefaultUnsetOrNull || x.Exp.Word == nil {
		return "", false
	}
	if ok && (value != "" || x.Exp.Op == syntax.DefaultUnset) {
		return value, true
	}
	return c.text(x.Exp.Word.Parts)
}

func unescaped(s string) string {
	if !strings.Contains(s, "\\") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
