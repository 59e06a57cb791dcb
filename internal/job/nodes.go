package job

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gbatch/internal/document"
)

// Bounds of a name in a list of nodes that is expanded: what is in front of the
// number, and the number with its zeros.
const (
	maxNodePrefix = 253
	maxNodeDigits = 9
)

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
			switch {
			case err != nil || err2 != nil || high < low || len(first) > maxNodeDigits || len(prefix) > maxNodePrefix:
				return nil, fmt.Errorf("%s is no range of numbers; write gpu[01-04,07]", document.Quote(part))
			case high-low+uint64(len(names)) >= maxNodes:
				return nil, fmt.Errorf("has more than %d nodes", maxNodes)
			}
			for n := low; n <= high; n++ {
				names = append(names, fmt.Sprintf("%s%0*d", prefix, len(first), n))
			}
		}
	}
	return names, nil
}
