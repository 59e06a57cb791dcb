package curves

import (
	"math"
	"slices"
	"strconv"
	"time"
)

// Curve is a series as it is read: only points at which something is known.
type Curve struct {
	Begin  time.Time
	Step   time.Duration // that a point stands for
	At     []int64       // seconds after Begin, where a point begins
	Values [kinds][]*float64
}

// curve is the series to read. Values have three digits, which is what is stored of
// them; a kind that is never known has none.
func (s *series) curve() *Curve {
	c := &Curve{Begin: time.Unix(s.begin, 0).UTC(), Step: time.Duration(s.step) * time.Second}
	var known [kinds]bool
	for i, p := range s.points {
		if p == nothing() {
			continue
		}
		c.At = append(c.At, int64(i)*s.step)
		for k, q := range p {
			var v *float64
			if x := unpack(q); !math.IsNaN(x) {
				x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64)
				v, known[k] = &x, true
			}
			c.Values[k] = append(c.Values[k], v)
		}
	}
	for k := range known {
		if !known[k] {
			c.Values[k] = nil
		}
	}
	return c
}

func (s *series) clone() *series {
	out := *s
	out.points = slices.Clone(s.points)
	return &out
}
