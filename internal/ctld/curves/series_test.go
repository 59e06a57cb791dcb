package curves

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// of has a value of one kind and knows nothing of the others.
func of(k Kind, x float64) Values {
	v := Values{}
	for k := range v {
		v[k] = math.NaN()
	}
	v[k] = x
	return v
}

// numbers are the values of a kind, -1 where one is not known.
func numbers(c *Curve, k Kind) (out []float64) {
	for _, v := range c.Values[k] {
		if v == nil {
			out = append(out, -1)
		} else {
			out = append(out, *v)
		}
	}
	return out
}

func TestSeries(t *testing.T) {
	s := &series{}
	s.add(1000, of(CPU, 500))
	s.add(1005, of(CPU, 1500)) // the mean of both
	s.add(1005, of(Mem, 7000))
	s.add(1007, of(Mem, 5000)) // the most
	s.add(1030, of(GPU, 100))
	s.add(900, of(GPU, 50)) // the clock was set back
	c := s.curve()
	if diff := cmp.Diff([]int64{0, 30}, c.At); diff != "" {
		t.Errorf("where points are (-want +got):\n%s", diff)
	}
	want := map[Kind][]float64{CPU: {1000, -1}, Mem: {7000, -1}, GPU: {-1, 75}, Sent: nil}
	for k, w := range want {
		if diff := cmp.Diff(w, numbers(c, k)); diff != "" {
			t.Errorf("kind %d (-want +got):\n%s", k, diff)
		}
	}
}

// TestLong: a series of any length has a bounded number of points, whose mean is that of
// what was put in, and is the same after it was stored.
func TestLong(t *testing.T) {
	for _, samples := range []int{1, maxPoints, maxPoints + 1, 3 * maxPoints, 100_000} {
		s, sum := &series{}, 0.0
		for i := range samples {
			x := float64(i % 100)
			sum += x
			s.add(int64(i*firstStep), of(GPU, x))
			if i%997 == 0 {
				again, err := decode(s.encode())
				if err != nil {
					t.Fatal(err)
				}
				s = again
			}
		}
		c := s.curve()
		got := 0.0
		for _, v := range numbers(c, GPU) {
			got += v
		}
		got /= float64(len(c.At))
		if want := sum / float64(samples); len(c.At) > maxPoints || len(c.At) < min(samples, maxPoints/2) || math.Abs(got-want) > 1.5 {
			t.Errorf("%d samples: %d points of %v, mean %.1f, want %.1f", samples, len(c.At), c.Step, got, want)
		}
	}
}

// TestDigits: what is stored is what was measured, in three digits or nearly.
func TestDigits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		x := math.Exp2(r.Float64() * 60)
		if got := unpack(pack(x)); math.Abs(got-x) > x/1000+0.001 {
			t.Fatalf("%g became %g", x, got)
		}
	}
	for _, x := range []float64{-1, 0} {
		if got := unpack(pack(x)); got != 0 {
			t.Errorf("%g became %g", x, got)
		}
	}
	if got := unpack(pack(math.Inf(1))); math.IsInf(got, 0) || math.IsNaN(got) {
		t.Errorf("too much became %g", got)
	}
}

// FuzzDecode: what is taken is stored again as it was, and can go on.
func FuzzDecode(f *testing.F) {
	s := &series{}
	for i := range 300 {
		s.add(int64(i*7), of(Kind(i%int(kinds)), float64(i)))
	}
	f.Add(s.encode())
	f.Add([]byte{format, 0, 20})
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := decode(raw)
		if err != nil {
			return
		}
		again, err := decode(s.encode())
		if err != nil || !cmp.Equal(s.points, again.points) || s.begin != again.begin || s.step != again.step {
			t.Fatalf("%v: %+v became %+v", err, s, again)
		}
		s.add(s.begin+s.step*1000, of(Mem, 1))
		if c := s.curve(); len(c.At) > maxPoints {
			t.Fatalf("%d points", len(c.At))
		}
	})
}
