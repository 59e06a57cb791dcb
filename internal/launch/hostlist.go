package launch

import (
	"fmt"
	"strconv"
	"strings"
)

// Hostlist writes names of nodes as Slurm does: n1, n2, n3, m is n[1-3],m. Names
// keep their order; numbers of one width that follow each other become a range.
func Hostlist(names []string) string {
	var out []string
	for k := 0; k < len(names); {
		prefix, first, width := numbered(names[k])
		if width == 0 {
			out, k = append(out, names[k]), k+1
			continue
		}
		var ranges []string
		end := k
		for from, last := first, first; ; {
			end++
			p, n, w := "", uint64(0), 0
			if end < len(names) {
				p, n, w = numbered(names[end])
			}
			same := w > 0 && p == prefix && (w == width || w > width && names[end][len(p)] != '0' && fmt.Sprintf("%0*d", width, n) == names[end][len(p):])
			if same && n == last+1 {
				last = n
				continue
			}
			ranges = append(ranges, rangeText(from, last, width))
			if !same {
				break
			}
			from, last, width = n, n, w
		}
		if len(ranges) == 1 && !strings.Contains(ranges[0], "-") {
			out = append(out, prefix+ranges[0])
		} else {
			out = append(out, prefix+"["+strings.Join(ranges, ",")+"]")
		}
		k = end
	}
	return strings.Join(out, ",")
}

func rangeText(from, to uint64, width int) string {
	if from == to {
		return fmt.Sprintf("%0*d", width, from)
	}
	return fmt.Sprintf("%0*d-%0*d", width, from, width, to)
}

// numbered splits a name in front of the digits at its end. Width is how many
// there are; 0: it has none that can be counted with.
func numbered(name string) (prefix string, n uint64, width int) {
	at := len(name)
	for at > 0 && name[at-1] >= '0' && name[at-1] <= '9' && len(name)-at < 9 {
		at--
	}
	n, err := strconv.ParseUint(name[at:], 10, 64)
	if err != nil {
		return name, 0, 0
	}
	return name[:at], n, len(name) - at
}

// Repeats writes numbers as Slurm does: 4, 4, 2 is 4(x2),2.
func Repeats(list []int) string {
	var out []string
	for k := 0; k < len(list); {
		end := k
		for end < len(list) && list[end] == list[k] {
			end++
		}
		text := strconv.Itoa(list[k])
		if end-k > 1 {
			text += fmt.Sprintf("(x%d)", end-k)
		}
		out, k = append(out, text), end
	}
	return strings.Join(out, ",")
}
