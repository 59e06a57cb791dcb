package human

import (
	"strings"
	"unicode/utf8"
)

// Wrap breaks s at blanks into lines of width columns at most, and where a word is
// longer within it.
func Wrap(s string, width int) []string {
	var lines []string
	for s != "" {
		at := breakAt(s, max(width, 1))
		if at == 0 {
			if at = len(Trim(s, max(width, 1))); at == 0 { // one character is wider than that
				_, at = utf8.DecodeRuneInString(s)
			}
		}
		lines = append(lines, strings.TrimRight(s[:at], " "))
		s = strings.TrimLeft(s[at:], " ")
	}
	return lines
}

// Fold breaks the lines of a text at blanks, so that they have width columns at most, 0
// for any, and begin all as far in. A word that is longer stays whole, as it may be an
// address or a path that is to be copied.
func Fold(s string, width int) string {
	if width <= 0 || len(s) <= width {
		return s
	}
	var lines []string
	for l := range strings.SplitSeq(s, "\n") {
		text := strings.TrimLeft(l, " ")
		indent := l[:len(l)-len(text)]
		for Width(text) > width-len(indent) {
			at := breakAt(text, width-len(indent))
			if at == 0 {
				if at = strings.IndexByte(text, ' '); at < 0 {
					break
				}
			}
			lines = append(lines, indent+strings.TrimRight(text[:at], " "))
			text = strings.TrimLeft(text[at:], " ")
		}
		lines = append(lines, indent+text)
	}
	return strings.Join(lines, "\n")
}

// breakAt is where the first line of s ends by a blank or by all of it, within width
// columns; 0 if its first word is longer.
func breakAt(s string, width int) int {
	line := Trim(s, width)
	if len(line) == len(s) || s[len(line)] == ' ' {
		return len(line)
	}
	return max(strings.LastIndexByte(line, ' '), 0)
}
