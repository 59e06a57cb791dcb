package job

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job/words"
)

// empty says that no command was given: the image's own runs.
func (c Command) empty() bool { return len(c.Argv) == 0 && strings.TrimSpace(c.Line) == "" }

// Args is what replaces the image's CMD; its ENTRYPOINT stays. No args: the
// image's own. The array form is passed as it is. The string form is split
// into words by the quoting rules of POSIX, with nothing expanded, unless it
// uses what only a shell can do; then shell is true and the
// line runs as /bin/sh -c LINE.
func (c Command) Args() (args []string, shell bool, err error) {
	if len(c.Argv) > 0 {
		return slices.Clone(c.Argv), false, nil
	}
	if c.empty() {
		return nil, false, nil
	}
	list, shell, err := words.Command(c.Line)
	if err != nil || !shell {
		return list, false, err
	}
	if err := words.CheckShell(c.Line); err != nil {
		return nil, false, err
	}
	return []string{"/bin/sh", "-c", c.Line}, true, nil
}

// MarshalJSON writes the form that the user wrote, "" for none.
func (c Command) MarshalJSON() ([]byte, error) {
	if len(c.Argv) > 0 {
		return json.Marshal(c.Argv)
	}
	return json.Marshal(c.Line)
}

// UnmarshalJSON reads a string, an array of strings or null.
func (c *Command) UnmarshalJSON(data []byte) error {
	*c = Command{}
	if len(data) > 0 && data[0] == '[' {
		return json.Unmarshal(data, &c.Argv)
	}
	return json.Unmarshal(data, &c.Line)
}

func readCommand(d *decoder, n *node, c *Docker) {
	switch n.Kind {
	case document.StringKind:
		readCommandLine(d, n, c)
	case document.ArrayKind:
		readCommandArray(d, n, c)
	default:
		d.WrongKind(n, "a string or an array of strings")
	}
}

func readCommandLine(d *decoder, n *node, c *Docker) {
	line := Command{Line: strings.Clone(n.Text)}
	if line.empty() {
		return
	}
	if len(line.Line) > maxArgBytes {
		d.Problem(n, fmt.Sprintf("has %d bytes, a command line may have at most %d", len(line.Line), maxArgBytes), "put it into a script in project storage")
		return
	}
	if strings.IndexByte(line.Line, 0) >= 0 {
		d.Problem(n, "must not contain a zero byte", "")
		return
	}
	args, shell, err := line.Args()
	if err != nil {
		d.Problem(n, err.Error(), `check the quotes, or write the command as an array: ["program", "argument"]`)
		return
	}
	switch {
	case shell:
		d.Note(n, "uses shell syntax and is run as /bin/sh -c; the image must have /bin/sh")
	case slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "$") }) && !isShell(args[0]):
		d.Note(n, "has a $ inside quotes, which no shell will replace; to have it replaced, run the line as sh -c '...'")
	}
	c.Command = line
}

// isShell says that a program would expand variables in its arguments.
func isShell(program string) bool {
	return strings.HasSuffix(program[strings.LastIndexByte(program, '/')+1:], "sh")
}

func readCommandArray(d *decoder, n *node, c *Docker) {
	total := 0
	var argv []string
	d.elements(n, maxArgs, func(i int, n *node) {
		var arg string
		ok := d.str(n, &arg, func(s string) string {
			switch {
			case len(s) > maxArgBytes:
				return fmt.Sprintf("has %d bytes, an argument may have at most %d", len(s), maxArgBytes)
			case strings.IndexByte(s, 0) >= 0:
				return "must not contain a zero byte"
			case i == 0 && s == "":
				return "must not be empty: it is the program to run"
			}
			return ""
		})
		if ok {
			argv = append(argv, arg)
			total += len(arg) + 1
		}
	})
	if total > maxCommandBytes {
		d.Problem(n, fmt.Sprintf("has %d bytes in all, at most %d are allowed", total, maxCommandBytes), "")
		return
	}
	if len(argv) > 0 {
		c.Command = Command{Argv: argv}
	}
}
