package curves

import (
	"encoding/binary"
	"errors"
	"math"
)

// Kind is what is measured.
type Kind int

// The kinds, in the order in which they are stored.
const (
	GPU      Kind = iota // percent of time in which a kernel ran, mean of the rank's GPUs
	GPUMem               // bytes, of all of them
	CPU                  // thousandths of cores that were busy
	Mem                  // bytes
	Received             // bytes a second, by a network of its own
	Sent
	Power // watts, of its GPUs
	kinds
)

// A series has at most this many points, and each stands at first for that many
// seconds. When it is full, each two become one.
const (
	maxPoints = 240
	firstStep = 10
)

// Values are those of one moment, by kind; NaN: not known.
type Values [kinds]float64

// unknown is the stored form of NaN. All others are logarithms: they err by less
// than a thousandth, whatever their size, and take two bytes.
const (
	unknown = math.MaxUint16
	perBit  = 1000
)

func pack(v float64) uint16 {
	if math.IsNaN(v) {
		return unknown
	}
	return uint16(min(math.Round(perBit*math.Log2(1+max(v, 0))), unknown-1))
}

func unpack(q uint16) float64 {
	if q == unknown {
		return math.NaN()
	}
	return math.Exp2(float64(q)/perBit) - 1
}

type point [kinds]uint16

// series is what a rank used, from its first sample on. The zero value is empty.
type series struct {
	begin  int64 // seconds since 1970
	step   int64 // seconds that a point stands for
	points []point

	// What the last point is made of. After a series was read, that is the point itself.
	sum Values
	n   [kinds]int
}

// add takes in what was measured at a time. A time before the last point's, by a
// clock that was set back, counts for that.
func (s *series) add(at int64, v Values) {
	if len(s.points) == 0 {
		s.begin, s.step = at, firstStep
	}
	for at-s.begin >= maxPoints*s.step {
		s.halve()
	}
	for place := int((at - s.begin) / s.step); len(s.points) <= place; {
		s.points = append(s.points, nothing())
		s.n = [kinds]int{}
	}
	last := &s.points[len(s.points)-1]
	for k := range v {
		if math.IsNaN(v[k]) {
			continue
		}
		if s.n[k]++; s.n[k] == 1 {
			s.sum[k] = v[k]
		} else {
			s.sum[k] = join(Kind(k), s.sum[k], v[k])
		}
		last[k] = pack(s.mean(Kind(k)))
	}
}

// join is two samples as one of both: of memory the larger, as the most is what one
// asks for; of all else the sum, of which the mean is taken.
func join(k Kind, a, b float64) float64 {
	if k == GPUMem || k == Mem {
		return max(a, b)
	}
	return a + b
}

func (s *series) mean(k Kind) float64 {
	if k == GPUMem || k == Mem {
		return s.sum[k]
	}
	return s.sum[k] / float64(s.n[k])
}

func nothing() (p point) {
	for k := range p {
		p[k] = unknown
	}
	return p
}

// halve makes each two points one that stands for twice the time.
func (s *series) halve() {
	half := s.points[:0]
	for i := 0; i < len(s.points); i += 2 {
		p := s.points[i]
		if i+1 < len(s.points) {
			p = both(p, s.points[i+1])
		}
		half = append(half, p)
	}
	s.points, s.step = half, 2*s.step
	s.resume()
}

// resume begins to add to the last point.
func (s *series) resume() {
	s.n = [kinds]int{}
	if len(s.points) == 0 {
		return
	}
	for k, q := range s.points[len(s.points)-1] {
		if q != unknown {
			s.sum[k], s.n[k] = unpack(q), 1
		}
	}
}

func both(a, b point) point {
	for k := range a {
		switch {
		case a[k] == unknown:
			a[k] = b[k]
		case b[k] == unknown:
		case Kind(k) == GPUMem || Kind(k) == Mem:
			a[k] = max(a[k], b[k])
		default:
			a[k] = pack((unpack(a[k]) + unpack(b[k])) / 2)
		}
	}
	return a
}

// format is the first byte of a stored series.
const format = 1

// encode is the series as it is stored.
func (s *series) encode() []byte {
	out := binary.AppendVarint(binary.AppendVarint([]byte{format}, s.begin), s.step)
	for _, p := range s.points {
		for _, q := range p {
			out = binary.LittleEndian.AppendUint16(out, q)
		}
	}
	return out
}

var errDamaged = errors.New("what is stored of what a rank used is damaged")

// Bounds of what is read: no time and no step is so large that sums of them are not
// numbers.
const maxTime = 1 << 40

func decode(raw []byte) (*series, error) {
	if len(raw) == 0 || raw[0] != format {
		return nil, errDamaged
	}
	raw = raw[1:]
	begin, n := binary.Varint(raw)
	raw = raw[max(n, 0):]
	step, m := binary.Varint(raw)
	raw = raw[max(m, 0):]
	const size = 2 * int(kinds)
	if n <= 0 || m <= 0 || begin < 0 || begin > maxTime || step < firstStep || step > maxTime || len(raw)%size != 0 || len(raw) == 0 || len(raw) > maxPoints*size {
		return nil, errDamaged
	}
	s := &series{begin: begin, step: step, points: make([]point, len(raw)/size)}
	for i := range s.points {
		for k := range s.points[i] {
			s.points[i][k] = binary.LittleEndian.Uint16(raw[i*size+2*k:])
		}
	}
	s.resume()
	return s, nil
}
