// Package sizes is sizes of memory as people write them on command lines. It is pure.
package sizes

import (
	"errors"
	"strconv"
	"strings"
)

// most is the most that a size may say, MiB. It is more than a job may
// have, and little enough to be multiplied by a job's cores.
const most = 1 << 40

// Parse reads a size as Slurm and all our commands do: a number of MiB, or one
// with K, M, G or T behind it.
func Parse(s string) (mib int64, err error) {
	unit := int64(1 << 10)
	number := strings.TrimSuffix(strings.ToUpper(s), "B")
	if n := len(number); n > 0 {
		switch number[n-1] {
		case 'K':
			unit = 1
		case 'M':
			unit = 1 << 10
		case 'G':
			unit = 1 << 20
		case 'T':
			unit = 1 << 30
		default:
			n++
		}
		number = number[:n-1]
	}
	if number == "" || strings.Trim(number, "0123456789") != "" {
		return 0, errors.New("want a number of MiB, or a number and K, M, G or T")
	}
	x, err := strconv.ParseInt(number, 10, 64)
	if mib = (x*unit + 1023) >> 10; err != nil || x > 1<<30 || mib > most { // digits alone are wrong by being too many
		return 0, errors.New("is too much")
	}
	return mib, nil
}

// GiB rounds MiB up to GiB.
func GiB(mib int64) int { return int((mib + 1023) >> 10) }
