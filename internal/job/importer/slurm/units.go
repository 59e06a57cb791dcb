package slurm

import (
	"errors"
	"strconv"
	"strings"
)

// wholeNumber reads digits alone.
func wholeNumber(s string) (int64, error) {
	if s == "" || len(s) > 12 || strings.Trim(s, "0123456789") != "" {
		return 0, errors.New("want a whole number")
	}
	return strconv.ParseInt(s, 10, 64)
}

// GPUs is a number of GPUs, of one model if that is named.
type GPUs struct {
	Model string // empty: any
	Count int
	given bool
}

// ParseGPUs reads N, MODEL or MODEL:N.
func ParseGPUs(s string) (GPUs, error) {
	g := GPUs{Count: 1, given: true}
	model, count, both := strings.Cut(s, ":")
	if n, err := wholeNumber(model); err == nil && !both {
		g.Count = int(n)
		return g, nil
	}
	g.Model = model
	if both {
		n, err := wholeNumber(count)
		if err != nil {
			return g, errors.New("want a number, or MODEL:NUMBER")
		}
		g.Count = int(n)
	}
	if len(g.Model) < 2 {
		return g, errors.New("names a model of less than 2 letters")
	}
	return g, nil
}
