package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"gbatch/internal/document"
)

// empty says that no command was given: the image's own runs.
func (c Command) empty() bool { return len(c.Argv) == 0 && strings.TrimSpace(c.Line) == "" }

// Args is what replaces the image's CMD; its ENTRYPOINT stays. No args: the
// image's own. The array form is passed as it is. The string form is split
// into words by the quoting rules of POSIX, with nothing expanded, unless it
// uses what only a shell can do (see needsShell); then shell is true and the
// line runs as /bin/sh -c LINE.
func (c Command) Args() (args []string, shell bool, err error) {
	if len(c.Argv) > 0 {
		return slices.Clone(c.Argv), false, nil
	}
	if c.empty() {
		return nil, false, nil
	}
	words, shell, err := splitLine(c.Line)
	if err != nil || !shell {
		return words, false, err
	}
	if err := checkShell(c.Line); err != nil {
		return nil, false, err
	}
	return []string{"/bin/sh", "-c", c.Line}, true, nil
}

// shellBytes are the bytes that, outside quotes, only a shell can act on. A
// line break between words ends a command, so it is one too. Not among them
// are * ? [ ] ~ { } ( ) ! and #: GPULab passes them to the program as they
// are, so a line that has nothing else is not given to a shell.
const shellBytes = "><|;&$`\n"

// Words splits a line into words by the quoting rules of POSIX, with nothing
// expanded and nothing else that a shell acts on.
func Words(line string) ([]string, error) {
	words, _, err := split(line, "")
	return words, err
}

// splitLine splits a command line into words, or says that it needs a shell.
func splitLine(line string) (words []string, shell bool, err error) {
	words, shell, err = split(line, shellBytes)
	if err == nil && !shell && words[0] == "" {
		return nil, false, errors.New("has an empty word where the program should be")
	}
	return words, shell, err
}

// split splits a line into words. Shell says that one of the bytes in special
// stands outside of quotes, or a variable before the first word.
func split(line, special string) (words []string, shell bool, err error) {
	line = strings.TrimSpace(line)
	var word []byte
	inWord := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n' && special == "":
			if inWord {
				words, word, inWord = append(words, string(word)), word[:0], false
			}
			continue
		case c == '\\' && i+1 == len(line):
			return nil, false, errors.New("ends in a backslash with nothing after it")
		case c == '\\' && line[i+1] == '\n':
			i++
			continue
		case c == '\\':
			i++
			word = append(word, line[i])
		case c == '\'' || c == '"':
			size, err := quoted(&word, line[i:])
			if err != nil {
				return nil, false, err
			}
			i += size - 1
		case strings.IndexByte(special, c) >= 0:
			shell = true
		case c == '=' && special != "" && len(words) == 0 && variableName(string(word)) == "":
			shell = true // NAME=value in front of a command
		default:
			word = append(word, c)
		}
		inWord = true
	}
	if inWord {
		words = append(words, string(word))
	}
	return words, shell, nil
}

// quoted appends the content of the quoted text at the start of s to word and
// returns its size with quotes. In double quotes a backslash escapes only
// itself, the quote, $, ` and a line break, as in a shell.
func quoted(word *[]byte, s string) (size int, err error) {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == s[0]:
			return i + 1, nil
		case s[0] == '"' && s[i] == '\\' && i+1 < len(s) && strings.IndexByte("\\\"$`\n", s[i+1]) >= 0:
			if i++; s[i] != '\n' {
				*word = append(*word, s[i])
			}
		default:
			*word = append(*word, s[i])
		}
	}
	return 0, fmt.Errorf("has a quote %c without its closing one", s[0])
}

// maxCheckedLine bounds the lines whose shell syntax is checked, since the time
// that takes grows with the square of the nesting. Longer ones fail in the
// container if they are wrong.
const maxCheckedLine = 8 << 10

// checkShell says where a line is not a shell program. The image's /bin/sh may
// be a bash, so what either of the two grammars accepts passes.
func checkShell(line string) error {
	if len(line) > maxCheckedLine {
		return nil
	}
	var first error
	for _, lang := range []syntax.LangVariant{syntax.LangPOSIX, syntax.LangBash} {
		_, err := syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(line), "")
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	if e := (syntax.ParseError{}); errors.As(first, &e) {
		return fmt.Errorf("is no shell command: at character %d: %s", e.Pos.Offset()+1, e.Text)
	}
	return errors.New("is no shell command")
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
