// Package fixed is the arithmetic of decisions: integers only, so that they come
// out the same on every machine. It is functions, and owns nothing.
package fixed

import "math/bits"

// MulDiv is a*b/c for numbers that are not below 0, rounded down.
func MulDiv(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return 1<<63 - 1
	}
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(min(q, 1<<63-1))
}

// LogBits is how many bits of a logarithm are behind the point.
const LogBits = 6

// Log2 is the binary logarithm of a number above 0, by linear interpolation
// between the powers of two.
func Log2(x uint64) int {
	n := bits.Len64(x) - 1
	rest := x << (63 - n) << 1 >> (64 - LogBits)
	return n<<LogBits + int(rest)
}

// Exp2 is the inverse of Log2.
func Exp2(l int) uint64 {
	n, rest := l>>LogBits, uint64(l&(1<<LogBits-1))
	if n >= LogBits {
		return 1<<n + rest<<(n-LogBits)
	}
	return 1<<n + rest>>(LogBits-n)
}
