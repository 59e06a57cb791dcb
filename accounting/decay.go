package accounting

import (
	"math/big"
	"math/bits"
)

// one is 1.0 in the fixed point of decay factors.
const one = uint64(1) << 63

// fractionBits is how finely a part of a half-life is resolved.
const fractionBits = 48

// halves[i] is 2^-(2^-(i+1)): the decay over 1/2, 1/4, 1/8... of a half-life.
// They are made by integer square roots, so that every machine has the same.
var halves = func() (out [fractionBits]uint64) {
	x := new(big.Int).SetUint64(one / 2)
	for i := range out {
		x.Lsh(x, 63)
		x.Sqrt(x)
		out[i] = x.Uint64()
	}
	return out
}()

// remaining is 2^-(elapsed/halfLife): how much is left of what was used so long
// ago. It is one for an elapsed time of 0 or less.
func remaining(elapsed, halfLife int64) uint64 {
	if elapsed <= 0 {
		return one
	}
	whole := elapsed / halfLife
	if whole > 62 {
		return 0
	}
	rest := uint64(elapsed % halfLife)
	fraction, _ := bits.Div64(rest>>(64-fractionBits), rest<<fractionBits, uint64(halfLife))
	out := one
	for i := range halves {
		if fraction>>(fractionBits-1-i)&1 != 0 {
			out = scaled(out, halves[i])
		}
	}
	return out >> whole
}

// scaled is v times a factor in fixed point.
func scaled(v, factor uint64) uint64 {
	hi, lo := bits.Mul64(v, factor)
	return hi<<1 | lo>>63
}

// invLn2 is 1/ln 2 in 32-bit fixed point.
const invLn2 = 6196328019

// accrued is what a constant rate leaves, at the end of a span, of what it used
// during the span: the integral of the rate and its decay. Spans that follow
// each other add up to the one that they make, to within rounding.
func accrued(rate, span, halfLife int64) int64 {
	if span <= 0 || rate <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(halfLife), invLn2)
	mean := hi<<32 | lo>>32 // what a rate of 1 comes to in the end: half-life / ln 2
	hi, lo = bits.Mul64(uint64(rate), scaled(mean<<fineBits(mean), one-remaining(span, halfLife)))
	n := fineBits(mean)
	hi, lo = hi>>n, hi<<(64-n)|lo>>n
	if hi != 0 || lo > maxUsage {
		return maxUsage
	}
	return int64(lo)
}

// fineBits is how far a value can be shifted up without loss, at most 20, so
// that short spans keep their precision.
func fineBits(v uint64) uint { return uint(min(bits.LeadingZeros64(v), 20)) }

// maxUsage bounds sums: they stop there and do not wrap around.
const maxUsage = 1<<62 - 1

// plus is a sum that stops at the bounds.
func plus(a, b int64) int64 {
	a, b = min(max(a, -maxUsage), maxUsage), min(max(b, -maxUsage), maxUsage)
	switch { // maxUsage is a quarter of the range: a sum of two never wraps
	case a+b > maxUsage:
		return maxUsage
	case a+b < -maxUsage:
		return -maxUsage
	}
	return a + b
}

// times is a product that stops at the bound. Factors are not below 0.
func times(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > maxUsage {
		return maxUsage
	}
	return int64(lo)
}
