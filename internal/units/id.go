package units

import (
	"fmt"
	"math"
	"strconv"
)

// MaxID is the highest number of a user or a group. The one above it means
// "nobody" or "leave as it is" to the kernel.
const MaxID = math.MaxUint32 - 1

// ParseID reads the number of a user or a group. It cuts none off.
func ParseID(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > MaxID {
		return 0, fmt.Errorf("%q is no number of a user or group: these go from 0 to %d", text, uint32(MaxID))
	}
	return uint32(n), nil
}
