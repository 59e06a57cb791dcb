package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// Reader reads values one behind the other. After the first error all that is read
// is empty.
type Reader struct {
	Format
	rest  []byte
	err   error
	depth int // of values in values
	count int // of values
}

// NewReader reads what is in a message.
func NewReader(f Format, b []byte) *Reader { return &Reader{Format: f, rest: b} }

// What bounds a message beside its size: values in values, and values, each of which
// takes more memory than it took bytes.
const (
	maxDepth  = 16
	maxValues = 1 << 18
)

var errShort = errors.New("it ends too early")

// Err is what was wrong first.
func (r *Reader) Err() error { return r.err }

// More tells whether there is anything left to read.
func (r *Reader) More() bool { return r.err == nil && len(r.rest) > 0 }

func (r *Reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.rest = nil
}

// List reads values of one type, whose number is before them.
func (r *Reader) List(of Type) (list []Value) {
	n := int64(r.whole(wholes[Int32]))
	if n < 0 || n > int64(len(r.rest)) {
		r.fail(errShort)
		return nil
	}
	for range n {
		if r.err != nil {
			return nil
		}
		list = append(list, r.data(of))
	}
	return list
}

// one reads exactly one value, as a number or as what it is.
func (r *Reader) one(of Type) Value {
	list := r.List(of)
	if r.err == nil && len(list) != 1 {
		r.fail(fmt.Errorf("%d values of type %d where there is to be one", len(list), of))
	}
	if r.err != nil {
		return Value{}
	}
	return list[0]
}

// Number reads one number.
func (r *Reader) Number(of Type) uint64 { return r.one(of).Number() }

// Text reads one string.
func (r *Reader) Text() string { s, _ := r.one(String).Data.(string); return s }

// Blob reads one value that is bytes.
func (r *Reader) Blob() []byte { b, _ := r.one(Bytes).Data.([]byte); return b }

// Proc reads one process.
func (r *Reader) Proc() Proc { p, _ := r.one(ProcID).Data.(Proc); return p }

// KV reads one value by its key.
func (r *Reader) KV() KV { kv, _ := r.one(Pair).Data.(KV); return kv }

// Infos reads named values, whose number is before them once more.
func (r *Reader) Infos() (list []Info) {
	if r.Number(Size) == 0 {
		return nil
	}
	for _, v := range r.List(InfoEntry) {
		list = append(list, v.Data.(Info))
	}
	return list
}

// value reads a value with its type.
func (r *Reader) value() Value {
	if r.depth++; r.depth > maxDepth {
		r.fail(errors.New("values in values in values"))
	}
	v := r.data(Type(r.whole(wholes[TypeNo])))
	r.depth--
	return v
}

// data reads what is of a type.
func (r *Reader) data(of Type) Value {
	if r.count++; r.count > maxValues {
		r.fail(errors.New("there are too many values"))
	}
	if how, ok := wholes[of]; ok {
		return Num(of, r.whole(how))
	}
	v := Value{Type: of}
	switch of {
	case Undefined:
	case String, Float, Double, Namespace: // numbers with a point are text
		v.Data = r.text()
	case Bytes, Packed, PackedData:
		v.Data = bytes.Clone(r.take(r.whole(wholes[Size])))
	case ProcID:
		v.Data = Proc{r.text(), uint32(r.whole(wholes[RankNo]))}
	case InfoEntry:
		v.Data = Info{Key: r.text(), Flags: uint32(r.whole(wholes[Directives])), Value: r.value()}
	case Pair:
		v.Data = KV{Key: r.text(), Value: r.value()}
	case AnyValue:
		v.Data = r.value()
	case Array:
		v.Data = r.items()
	case Timeval:
		v.Data = [2]int64{int64(r.whole(wholes[Int64])), int64(r.whole(wholes[Int64]))}
	case Envar:
		v.Data = [3]string{r.text(), r.text(), string(r.take(1))}
	default:
		r.fail(fmt.Errorf("%w %d", ErrType, of))
	}
	return v
}

// ErrType is that of a value whose type this package does not know.
var ErrType = errors.New("there is a value of type")

func (r *Reader) items() Items {
	items := Items{Of: Type(r.whole(wholes[TypeNo]))}
	n := r.whole(wholes[Size])
	if items.Of == Undefined {
		return items
	}
	if n > uint64(len(r.rest)) { // each takes a byte at least
		r.fail(errShort)
	}
	if r.depth++; r.depth > maxDepth {
		r.fail(errors.New("values in values in values"))
	}
	for ; n > 0 && r.err == nil; n-- {
		items.List = append(items.List, r.data(items.Of))
	}
	r.depth--
	return items
}

// text reads a string. One of no bytes, not even the zero, was none.
func (r *Reader) text() string {
	n := int64(r.whole(wholes[Int32]))
	if n < 0 {
		r.fail(errors.New("a string has a length below 0"))
	}
	s, _, _ := strings.Cut(string(r.take(uint64(n))), "\x00")
	return s
}

func (r *Reader) take(n uint64) []byte {
	if n > uint64(len(r.rest)) || r.err != nil {
		r.fail(errShort)
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// whole reads a number. One that says how wide it is may be of another machine,
// and has to fit all the same.
func (r *Reader) whole(how whole) uint64 {
	if !how.always && (!how.tagged || r.Flex) {
		return r.bare(how)
	}
	tag := Type(r.bare(wholes[TypeNo]))
	was, ok := wholes[tag]
	if !ok || was.tagged || was.signed != how.signed {
		r.fail(fmt.Errorf("a number has the width of type %d", tag))
		return 0
	}
	n := r.bare(was)
	if how.signed && int64(n) != int64(int32(n)) || !how.signed && n > limit(how.bits) {
		r.fail(fmt.Errorf("%d is more than %d bits", n, how.bits))
		return 0
	}
	return n
}

// bare reads a number of that width.
func (r *Reader) bare(how whole) uint64 {
	if r.Flex && how.bits > 8 {
		return r.flex(how)
	}
	b := r.take(uint64(how.bits / 8))
	if b == nil {
		return 0
	}
	var full [8]byte
	copy(full[8-len(b):], b)
	n := binary.BigEndian.Uint64(full[:])
	if how.signed { // extend the sign
		n = uint64(int64(n<<(64-how.bits)) >> (64 - how.bits))
	}
	return n
}

func (r *Reader) flex(how whole) (n uint64) {
	for k := 0; ; k++ {
		b := r.take(1)
		if b == nil {
			return 0
		}
		if k == 8 {
			n |= uint64(b[0]) << 56
			break
		}
		n |= uint64(b[0]&0x7f) << (7 * k)
		if b[0] < 0x80 {
			break
		}
	}
	if n > limit(how.bits) {
		r.fail(fmt.Errorf("%d is more than %d bits", n, how.bits))
		return 0
	}
	if how.signed {
		n = n>>1 ^ -(n & 1)
	}
	return n
}
