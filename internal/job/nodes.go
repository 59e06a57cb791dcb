package job

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// maxNodeList bounds what one list of nodes expands to.
const maxNodeList = 100_000

// ParseNodes reads names of nodes as Slurm writes them: n[01-03,7],m1.
func ParseNodes(list string) ([]string, error) {
	var names []string
	for rest := list; rest != ""; {
		at := strings.IndexAny(rest+",", ",[")
		prefix, tail := rest[:at], rest[at:]
		if !strings.HasPrefix(tail, "[") {
			if prefix != "" {
				names = append(names, prefix)
			}
			rest = strings.TrimPrefix(tail, ",")
			continue
		}
		ranges, after, closed := strings.Cut(tail[1:], "]")
		if rest = strings.TrimPrefix(after, ","); !closed || after != "" && after == rest {
			return nil, errors.New("has a bracket that is not closed, or text behind one")
		}
		for part := range strings.SplitSeq(ranges, ",") {
			first, last, ranged := strings.Cut(part, "-")
			if !ranged {
				last = first
			}
			low, err := strconv.ParseUint(first, 10, 32)
			high, err2 := strconv.ParseUint(last, 10, 32)
			if err != nil || err2 != nil || high < low || high-low+uint64(len(names)) >= maxNodeList {
				return nil, fmt.Errorf("%q is no range of numbers; write gpu[01-04,07]", part)
			}
			for n := low; n <= high; n++ {
				names = append(names, fmt.Sprintf("%s%0*d", prefix, len(first), n))
			}
		}
	}
	return names, nil
}
