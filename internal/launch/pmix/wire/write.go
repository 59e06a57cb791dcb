package wire

import (
	"encoding/binary"
	"fmt"
)

// Writer writes values one behind the other. The zero value of its buffer is
// empty.
type Writer struct {
	Format
	Buf []byte
}

// Put writes values of one type, with their number before them.
func (w *Writer) Put(of Type, list ...Value) {
	w.whole(wholes[Int32], uint64(len(list)))
	for _, v := range list {
		w.data(of, v.Data)
	}
}

// Status writes one.
func (w *Writer) Status(s Status) { w.Put(StatusCode, Num(StatusCode, uint64(s))) }

// KV writes one.
func (w *Writer) KV(kv KV) { w.Put(Pair, Value{Pair, kv}) }

// Blob writes bytes as one value.
func (w *Writer) Blob(b []byte) { w.Put(Bytes, Value{Bytes, b}) }

// value writes a value with its type.
func (w *Writer) value(v Value) {
	w.whole(wholes[TypeNo], uint64(v.Type))
	w.data(v.Type, v.Data)
}

// data writes what is of a type. Only this package and its callers make values, so
// one of another type is a mistake of theirs.
func (w *Writer) data(of Type, data any) {
	if how, ok := wholes[of]; ok {
		w.whole(how, Value{of, data}.Number())
		return
	}
	switch d := data.(type) {
	case nil:
	case string:
		w.text(d)
	case []byte:
		w.whole(wholes[Size], uint64(len(d)))
		w.Buf = append(w.Buf, d...)
	case Proc:
		w.text(d.Space)
		w.whole(wholes[RankNo], uint64(d.Rank))
	case Info:
		w.text(d.Key)
		w.whole(wholes[Directives], uint64(d.Flags))
		w.value(d.Value)
	case KV:
		w.text(d.Key)
		w.value(d.Value)
	case Value:
		w.value(d)
	case Items:
		w.whole(wholes[TypeNo], uint64(d.Of))
		w.whole(wholes[Size], uint64(len(d.List)))
		for _, v := range d.List {
			w.data(d.Of, v.Data)
		}
	case [2]int64:
		w.whole(wholes[Int64], uint64(d[0]))
		w.whole(wholes[Int64], uint64(d[1]))
	case [3]string:
		w.text(d[0])
		w.text(d[1])
		w.Buf = append(w.Buf, d[2]...)
	default:
		panic(fmt.Sprintf("write PMIx type %d: %T", of, data))
	}
}

// text writes a string, with the zero behind it.
func (w *Writer) text(s string) {
	w.whole(wholes[Int32], uint64(len(s)+1))
	w.Buf = append(append(w.Buf, s...), 0)
}

// whole writes a number.
func (w *Writer) whole(how whole, n uint64) {
	if how.always || how.tagged && !w.Flex {
		w.whole(wholes[TypeNo], uint64(how.tag()))
	}
	switch {
	case how.bits == 8:
		w.Buf = append(w.Buf, byte(n))
	case w.Flex:
		w.flex(how, n)
	case how.bits == 16:
		w.Buf = binary.BigEndian.AppendUint16(w.Buf, uint16(n))
	case how.bits == 32:
		w.Buf = binary.BigEndian.AppendUint32(w.Buf, uint32(n))
	default:
		w.Buf = binary.BigEndian.AppendUint64(w.Buf, n)
	}
}

// flex writes a number by seven bits a byte, the low ones first; the ninth byte
// has eight. The sign is the lowest bit, and turns the others over.
func (w *Writer) flex(how whole, n uint64) {
	if how.signed {
		n = n<<1 ^ uint64(int64(n)>>63)
	} else {
		n &= limit(how.bits)
	}
	for k := 0; k < 8 && n >= 0x80; k++ {
		w.Buf = append(w.Buf, byte(n)|0x80)
		n >>= 7
	}
	w.Buf = append(w.Buf, byte(n))
}
