package follow

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
)

// amounts finds "12 of 80 MiB", "1.5 GiB of 2 GiB" and "3 of 7" in what a node
// says of its progress.
var amounts = regexp.MustCompile(`([0-9.]+) ?([KMGT]?i?B)? of ([0-9.]+) ?([KMGT]?i?B)?`)

const barWidth = 20

// bar draws how far a node is, if its words have amounts: [######    ]  31%.
func bar(progress string) string {
	all := amounts.FindAllStringSubmatch(progress, -1)
	if len(all) == 0 {
		return ""
	}
	m := all[len(all)-1] // of files, and of bytes: the bytes
	if m[2] == "" {
		m[2] = m[4]
	}
	done, ok := amount(m[1], m[2])
	total, ok2 := amount(m[3], m[4])
	if !ok || !ok2 || total <= 0 {
		return ""
	}
	part := min(max(done/total, 0), 1)
	full := int(part * barWidth)
	return "[" + strings.Repeat("#", full) + strings.Repeat(" ", barWidth-full) + "] " + strconv.Itoa(int(part*100)) + "%"
}

func amount(number, unit string) (float64, bool) {
	if unit == "" {
		v, err := strconv.ParseFloat(number, 64)
		return v, err == nil
	}
	v, err := humanize.ParseBytes(number + unit)
	return float64(v), err == nil
}
