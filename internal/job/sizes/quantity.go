package sizes

import (
	"errors"
	"strconv"
	"strings"
)

// Quantity reads a number with a decimal or binary suffix, as Kubernetes has them.
func Quantity(s string) (float64, error) {
	scale := 1.0
	for suffix, x := range map[string]float64{"m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15,
		"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50} {
		if number, ok := strings.CutSuffix(s, suffix); ok && number != "" && strings.IndexByte("0123456789.", number[len(number)-1]) >= 0 {
			s, scale = number, x
			break
		}
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || x < 0 || x*scale > 1e18 || x != x {
		return 0, errors.New("is no amount")
	}
	return x * scale, nil
}
