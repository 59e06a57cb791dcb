package dstack

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"gbatch/internal/document"
	"gbatch/internal/job"
	"gbatch/internal/job/times"
)

// span is a range of amounts, as 2.. or 24GB..80GB. An exact amount has both.
type span struct {
	low, high       float64
	hasLow, hasHigh bool
}

func (s span) exact() bool { return s.hasLow && s.hasHigh && s.low == s.high }

// least is the amount to ask for: the lower end, or, of a range that has
// none, base where that is allowed.
func (s span) least(base float64) float64 {
	if s.hasLow {
		return s.low
	}
	return min(base, s.high)
}

// parseSpan reads an amount or a range of amounts, each by the function one.
func parseSpan(text string, one func(string) (float64, error)) (s span, err error) {
	text = strings.ReplaceAll(text, " ", "")
	low, high, ranged := strings.Cut(text, "..")
	if !ranged {
		high = low
	}
	if low == "" && high == "" {
		return s, errors.New("is an empty range")
	}
	if low != "" {
		if s.low, err = one(low); err != nil {
			return s, err
		}
		s.hasLow = true
	}
	if high != "" {
		if s.high, err = one(high); err != nil {
			return s, err
		}
		s.hasHigh = true
	}
	return s, s.check()
}

func (s span) check() error {
	if s.hasLow && s.hasHigh && s.low > s.high {
		return fmt.Errorf("is a range whose first end, %v, is above the second, %v", s.low, s.high)
	}
	return nil
}

// Amounts of a span. The bound keeps what follows in whole numbers.
const maxAmount = 1 << 40

func parseCount(s string) (float64, error) {
	x, err := strconv.ParseUint(s, 10, 40)
	if err != nil {
		return 0, fmt.Errorf("has %s, which is no whole number", document.Quote(s))
	}
	return float64(x), nil
}

// parseMemory reads a size of memory in GiB. GB means GiB here, and so does a
// number alone.
func parseMemory(s string) (float64, error) {
	m := regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)([a-z]*)$`).FindStringSubmatch(strings.ToLower(strings.ReplaceAll(s, " ", "")))
	if m == nil {
		return 0, fmt.Errorf("has %s, which is no size such as 512MB, 24GB or 1.5TB", document.Quote(s))
	}
	x, err := strconv.ParseFloat(m[1], 64)
	switch m[2] {
	case "mb":
		x /= 1024
	case "gb", "":
	case "tb":
		x *= 1024
	default:
		return 0, fmt.Errorf("has %s, which is no size such as 512MB, 24GB or 1.5TB", document.Quote(s))
	}
	if err != nil || x > maxAmount {
		return 0, fmt.Errorf("has %s, which is too much", document.Quote(s))
	}
	return x, nil
}

// roundUp rounds a size up.
func roundUp(x float64) int { return int(math.Ceil(x)) }

var units = map[string]job.Duration{"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}

// parseDuration reads a number and a unit, or seconds alone.
func parseDuration(s string) (job.Duration, error) {
	m := regexp.MustCompile(`^([0-9]+) *([smhdw]?)$`).FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return 0, errors.New(`want a number and s, m, h, d or w, such as "90m", "2h" or "1d", or a number of seconds`)
	}
	x, err := strconv.ParseInt(m[1], 10, 64)
	unit := units[m[2]]
	if err != nil || x > int64(times.MaxDuration/unit) {
		return 0, errors.New("must not be longer than 3650 days")
	}
	return job.Duration(x) * unit, nil
}

// gpuSpec is what resources.gpu says.
type gpuSpec struct {
	vendor string
	names  []string
	count  *span // nil: 1
	memory *span // of each GPU, GiB
}

// gpuVendors are the words for vendors.
var gpuVendors = map[string]string{"nvidia": "nvidia", "amd": "amd", "google": "google", "tpu": "google", "intel": "intel", "tenstorrent": "tenstorrent", "tt": "tenstorrent"}

// parseGPU reads the short form of resources.gpu, as A100:80GB:2: parts between
// colons, each known by its form.
func parseGPU(text string) (g gpuSpec, err error) {
	for part := range strings.SplitSeq(strings.ReplaceAll(text, " ", ""), ":") {
		vendor, isVendor := gpuVendors[strings.ToLower(part)]
		switch {
		case part == "":
			return g, errors.New("has an empty part")
		case isVendor && g.vendor != "":
			return g, errors.New("names two vendors")
		case isVendor:
			g.vendor = vendor
		case isLetter(part[0]) && g.names != nil:
			return g, errors.New("has names in two parts: separate them by commas")
		case isLetter(part[0]):
			if g.names = strings.Split(part, ","); strings.Contains(","+part+",", ",,") {
				return g, errors.New("has an empty name")
			}
		case strings.ContainsFunc(part, func(c rune) bool { return c < 0x80 && isLetter(byte(c)) }):
			if g.memory, err = another(g.memory, part, parseMemory); err != nil {
				return g, err
			}
		default:
			if g.count, err = another(g.count, part, parseCount); err != nil {
				return g, err
			}
		}
	}
	return g, nil
}

// another is the span of a part of which there may be one only.
func another(have *span, part string, one func(string) (float64, error)) (*span, error) {
	if have != nil {
		return nil, fmt.Errorf("has %s, and another part of its kind before it", document.Quote(part))
	}
	s, err := parseSpan(part, one)
	return &s, err
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
