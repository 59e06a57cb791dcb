// Package parts takes a YAML text of several documents apart. It is pure.
package parts

import (
	"fmt"
	"regexp"
	"strings"

	"gbatch/internal/document"
)

// maxObjects bounds how many documents one file may have.
const maxObjects = 1000

// Read gives the documents of a YAML text that are not empty.
func Read(data []byte) (list []*document.Node, err error) {
	text := string(data)
	line, end := 0, 0
	for _, at := range Spans(text) {
		line, end = line+strings.Count(text[end:at[0]], "\n"), at[0]
		part := text[at[0]:at[1]]
		if Nothing(part) {
			continue
		}
		if len(list) == maxObjects {
			return nil, document.Problems{{Line: line + 1, Message: fmt.Sprintf("has more than %d objects", maxObjects), Hint: "divide the file"}}
		}
		n, err := document.ReadPart([]byte(part), line)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, nil
}

// Nothing says whether a part of a file has no document, as the lines of a licence
// before the first one.
func Nothing(part string) bool {
	for line := range strings.Lines(part) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return false
		}
	}
	return true
}

// Spans are where documents of a YAML text begin and end.
func Spans(text string) (list [][2]int) {
	separator := regexp.MustCompile(`(?m)^---([ \t\r].*)?$`)
	start := 0
	for _, at := range separator.FindAllStringIndex(text, -1) {
		list = append(list, [2]int{start, at[0]})
		start = at[1]
	}
	return append(list, [2]int{start, len(text)})
}

// EmptyLines are as many as a text has.
func EmptyLines(text string) string { return strings.Repeat("\n", strings.Count(text, "\n")) }
