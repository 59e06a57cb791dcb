package job

import (
	"errors"
	"fmt"
	"strings"

	"gbatch/internal/document"
	"gbatch/oci/ref"
)

func readDocker(d *decoder, n *node, r *Request) {
	if document.Object(d, n, dockerFields, &r.Docker) {
		checkGIDVariable(d, n, &r.Docker)
	}
}

// checkGIDVariable finds a variable that has two values.
func checkGIDVariable(d *decoder, n *node, c *Docker) {
	if _, ok := c.Environment[c.ProjectGIDVariable]; ok && c.ProjectGIDVariable != "" {
		d.ProblemAt(n, "projectGidVariableName", fmt.Sprintf("names %q, which \"environment\" sets too", c.ProjectGIDVariable), "keep one of them")
	}
}

// readImage splits the registry login off the image and keeps the rest in its
// canonical form. No message quotes the image: a misspelt one may have its
// password anywhere.
func readImage(d *decoder, n *node, c *Docker) {
	if n.Kind != document.StringKind {
		d.WrongKind(n, "a string")
		return
	}
	if strings.TrimSpace(n.Text) == "" {
		d.Problem(n, "must not be empty", `write an image reference such as "debian:stable"`)
		return
	}
	r, creds, err := ref.Parse(strings.Clone(n.Text))
	if err != nil {
		message := "is no image reference"
		if e := (*ref.Error)(nil); errors.As(err, &e) {
			message += ": " + e.Part + " " + e.Detail
		}
		d.Problem(n, message, "write "+ref.Forms)
		return
	}
	c.Image, d.creds = r.String(), creds
}

// readEnvironment reads an object of variables. Numbers are taken as written.
func readEnvironment(d *decoder, n *node, c *Docker) {
	if n.Kind != document.ObjectKind {
		d.WrongKind(n, `an object { "NAME": "value" }`)
		return
	}
	if len(n.Kids) > maxVariables {
		d.Problem(n, fmt.Sprintf("has %d variables, at most %d are allowed", len(n.Kids), maxVariables), "")
		return
	}
	for _, kid := range n.Kids {
		if _, ok := c.Environment[kid.Key]; ok {
			d.Repeated(kid)
			continue
		}
		if name := variableName(kid.Key); name != "" {
			d.Problem(kid, name, "")
		}
		switch size := len(kid.Key) + 1 + len(kid.Text); {
		case kid.Kind != document.StringKind && kid.Kind != document.NumberKind && kid.Kind != document.BoolKind:
			d.WrongKind(kid, "a string, a number or a truth value")
		case size > maxArgBytes:
			d.Problem(kid, fmt.Sprintf("has %d bytes with its name, at most %d are allowed", size, maxArgBytes), "put long data into a file in project storage")
		case strings.IndexByte(kid.Text, 0) >= 0:
			d.Problem(kid, "must not contain a zero byte", "")
		default:
			if c.Environment == nil {
				c.Environment = make(map[string]string, len(n.Kids))
			}
			c.Environment[strings.Clone(kid.Key)] = strings.Clone(kid.Text)
		}
	}
}

// variableName wants a shell name that is not ours to set.
func variableName(s string) string {
	switch {
	case s == "" || len(s) > 256 || isDigit(s[0]) || strings.IndexFunc(s, func(c rune) bool { return c > '~' || !document.IsNameByte(byte(c)) }) >= 0:
		return "must be a variable's name: letters, digits and _, not starting with a digit, at most 256 characters"
	case strings.HasPrefix(s, "GPULAB_") || strings.HasPrefix(s, "GBATCH_"):
		return fmt.Sprintf("must not use the name %s: names that start with GPULAB_ or GBATCH_ are set by the system", document.Quote(s))
	}
	return ""
}

// absolutePath wants an absolute path without .. elements.
func absolutePath(s string) string {
	switch {
	case !strings.HasPrefix(s, "/"):
		return fmt.Sprintf("must be an absolute path, is %s", document.Quote(s))
	case len(s) > maxPathBytes:
		return fmt.Sprintf("has %d bytes, at most %d are allowed", len(s), maxPathBytes)
	case strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return "must not contain line breaks or control characters"
	case strings.Contains(s+"/", "/../"):
		return fmt.Sprintf("must not contain .. elements, is %s", document.Quote(s))
	}
	return ""
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
