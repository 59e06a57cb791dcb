package human

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Hosts writes node names as Slurm does: gpu[01-04,07],login. The
// order of the first occurrences is kept; numbers in brackets are sorted.
func Hosts(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	type group struct {
		prefix  string
		width   int // digits with leading zeros; 0: none
		numbers []int
		name    string // without a number
	}
	var groups []*group
	for _, name := range names {
		g := &group{name: name}
		if prefix, n, width, ok := splitNumber(name); ok {
			g = &group{prefix: prefix, width: width, numbers: []int{n}}
			at := slices.IndexFunc(groups, func(h *group) bool { return h.name == "" && h.prefix == prefix && h.width == width })
			if at >= 0 {
				groups[at].numbers = append(groups[at].numbers, n)
				continue
			}
		}
		groups = append(groups, g)
	}
	parts := make([]string, len(groups))
	for i, g := range groups {
		switch {
		case g.name != "":
			parts[i] = g.name
		case len(g.numbers) == 1:
			parts[i] = fmt.Sprintf("%s%0*d", g.prefix, g.width, g.numbers[0])
		default:
			parts[i] = g.prefix + "[" + ranges(g.numbers, g.width) + "]"
		}
	}
	return strings.Join(parts, ",")
}

// splitNumber cuts the digits at the end of a name. Width is their count when
// they begin with 0, and else 0, so that n9 and n10 share a range.
func splitNumber(name string) (prefix string, n, width int, ok bool) {
	prefix = strings.TrimRight(name, "0123456789")
	digits := name[len(prefix):]
	n, err := strconv.Atoi(digits)
	if err != nil || len(digits) > 9 {
		return "", 0, 0, false
	}
	if len(digits) > 1 && digits[0] == '0' {
		width = len(digits)
	}
	return prefix, n, width, true
}

func ranges(numbers []int, width int) string {
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	var parts []string
	for i := 0; i < len(numbers); {
		end := i
		for end+1 < len(numbers) && numbers[end+1] == numbers[end]+1 {
			end++
		}
		text := fmt.Sprintf("%0*d", width, numbers[i])
		if end > i {
			text += fmt.Sprintf("-%0*d", width, numbers[end])
		}
		parts = append(parts, text)
		i = end + 1
	}
	return strings.Join(parts, ",")
}
