package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBytes: values are written as the library's releases write them, and read
// back.
func TestBytes(t *testing.T) {
	fixed, flex := Format{}, Format{Flex: true}
	for name, c := range map[string]struct {
		format Format
		of     Type
		list   []Value
		want   string
	}{
		"none":            {fixed, Uint32, nil, "00000000"},
		"byte":            {fixed, Uint8, []Value{Num(Uint8, 7)}, "00000001 07"},
		"status":          {fixed, StatusCode, []Value{Num(StatusCode, math.MaxUint64-46)}, "00000001 ffffffd1"},
		"size":            {fixed, Size, []Value{Num(Size, 2)}, "00000001 000f 0000000000000002"},
		"int":             {fixed, Int, []Value{Num(Int, math.MaxUint64)}, "00000001 0009 ffffffff"},
		"pid":             {fixed, PID, []Value{Num(PID, 300)}, "00000001 000e 0000012c"},
		"string":          {fixed, String, []Value{Text("ab")}, "00000001 00000003 616200"},
		"strings":         {flex, String, []Value{Text(""), Text("a")}, "04 02 00 04 6100"},
		"flex-status":     {flex, StatusCode, []Value{Num(StatusCode, math.MaxUint64-46)}, "02 5d"},
		"flex-size":       {flex, Size, []Value{Num(Size, 300)}, "02 ac02"},
		"flex-pid":        {flex, PID, []Value{Num(PID, 300)}, "02 0e ac02"},
		"flex-most":       {flex, Uint64, []Value{Num(Uint64, math.MaxUint64)}, "02 ffffffffffffffffff"},
		"flex-least":      {flex, Int64, []Value{Num(Int64, 1<<63)}, "02 ffffffffffffffffff"},
		"rank":            {flex, RankNo, []Value{Rank(AllRanks)}, "02 feffffff0f"},
		"bytes":           {flex, Bytes, []Value{{Bytes, []byte{1, 2}}}, "02 02 0102"},
		"process":         {flex, ProcID, []Value{{ProcID, Proc{"n", 3}}}, "02 04 6e00 03"},
		"pair":            {flex, Pair, []Value{{Pair, KV{"k", Num(Uint16, 500)}}}, "02 04 6b00 0d f403"},
		"info":            {fixed, InfoEntry, []Value{{InfoEntry, Info{"k", 1, Num(Bool, 1)}}}, "00000001 00000002 6b00 00000001 0001 01"},
		"undefined":       {fixed, InfoEntry, []Value{{InfoEntry, Info{Key: "k"}}}, "00000001 00000002 6b00 00000000 0000"},
		"array":           {flex, Pair, []Value{{Pair, KV{"k", Infos(KV{"a", Text("b")})}}}, "02 04 6b00 27 18 01 04 6100 00 03 04 6200"},
		"array-of-none":   {flex, AnyValue, []Value{{AnyValue, Value{Array, Items{}}}}, "02 27 00 00"},
		"time":            {flex, AnyValue, []Value{{AnyValue, Value{Timeval, [2]int64{-1, 2}}}}, "02 12 01 04"},
		"variable":        {flex, AnyValue, []Value{{AnyValue, Value{Envar, [3]string{"A", "b", ":"}}}}, "02 2e 04 4100 04 6200 3a"},
		"point":           {flex, AnyValue, []Value{{AnyValue, Value{Double, "1.500000"}}}, "02 11 12 312e35303030303000"},
		"value-in-values": {fixed, Array, []Value{{Array, Items{Uint32, []Value{Num(Uint32, 1), Num(Uint32, 2)}}}}, "00000001 000e 000f0000000000000002 00000001 00000002"},
	} {
		w := Writer{Format: c.format}
		w.Put(c.of, c.list...)
		want, err := hex.DecodeString(strings.ReplaceAll(c.want, " ", ""))
		if err != nil {
			t.Fatal(name, err)
		}
		if diff := cmp.Diff(want, w.Buf); diff != "" {
			t.Errorf("%s: %x (-want +got):\n%s", name, w.Buf, diff)
		}
		r := NewReader(c.format, want)
		if diff := cmp.Diff(c.list, r.List(c.of)); diff != "" || r.Err() != nil || r.More() {
			t.Errorf("%s is read (-want +got), %v:\n%s", name, r.Err(), diff)
		}
	}
}

// TestUnreadable: what is no value is an error, and takes no memory.
func TestUnreadable(t *testing.T) {
	deep := bytes.Repeat([]byte{byte(AnyValue)}, 100)
	for name, c := range map[string]struct {
		flex bool
		of   Type
		hex  string
		want string
	}{
		"nothing":        {false, Uint32, "", "it ends too early"},
		"short":          {false, Uint32, "00000001 0000", "it ends too early"},
		"many":           {false, Byte, "7fffffff 00", "it ends too early"},
		"below-0":        {false, Byte, "80000000 00", "it ends too early"},
		"string-below-0": {false, String, "00000001 ffffffff 00", "a string has a length below 0"},
		"long-bytes":     {true, Bytes, "02 ffffffffffffffffff 00", "it ends too early"},
		"long-array":     {true, Array, "02 0e ffffff7f 00", "it ends too early"},
		"wide":           {true, Uint16, "02 ffff7f", "2097151 is more than 16 bits"},
		"unknown":        {true, AnyValue, "02 31 00", "there is a value of type 49"},
		"tag":            {false, Size, "00000001 0004 0000000000000001", "a number has the width of type 4"},
		"deep":           {true, AnyValue, "02" + hex.EncodeToString(deep), "values in values in values"},
	} {
		b, err := hex.DecodeString(strings.ReplaceAll(c.hex, " ", ""))
		if err != nil {
			t.Fatal(name, err)
		}
		r := NewReader(Format{Flex: c.flex}, b)
		r.List(c.of)
		if r.Err() == nil || r.Err().Error() != c.want {
			t.Errorf("%s: %v, want %s", name, r.Err(), c.want)
		}
	}
}

// hello is a first message as a library sends it.
func hello(parts ...any) []byte {
	var body []byte
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			body = append(append(body, p...), 0)
		case int:
			body = binary.BigEndian.AppendUint32(body, uint32(p))
		case byte:
			body = append(body, p)
		case []byte:
			body = append(body, p...)
		}
	}
	head := make([]byte, headBytes)
	binary.NativeEndian.PutUint32(head[8:], uint32(len(body)))
	return append(head, body...)
}

func TestHello(t *testing.T) {
	good := hello("native", 8, make([]byte, 8), byte(0), "space", 3, "4.2.2", "v41", byte(1), "hash")
	got, err := ReadHello(bytes.NewReader(good))
	want := Hello{Proc: Proc{"space", 3}, Version: Version{4, 2, 2}, Format: "v41", Buffers: Plain}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := ReadHello(bytes.NewReader(hello("none", 0, byte(3), 0, 0))); err != nil || got.Kind != 3 {
		t.Errorf("a tool: %+v, %v", got, err)
	}
	for name, bad := range map[string][]byte{
		"short":      good[:len(good)-3],
		"no-buffers": hello("native", 0, byte(0), "space", 3, "4.2.2", "v41"),
		"no-zero":    hello([]byte("native")),
		"credential": hello("native", 1<<30, byte(0)),
		"empty":      hello(),
		"long":       append([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}, 0, 0, 0, 0),
	} {
		if got, err := ReadHello(bytes.NewReader(bad)); err == nil {
			t.Errorf("%s is read as %+v", name, got)
		}
	}
}

func TestVersion(t *testing.T) {
	for s, want := range map[string]Version{"4.2.2": {4, 2, 2}, "v3.1.5rc1": {3, 1, 5}, "2.1": {2, 1, 0}, "": {}, "x": {}, "5.0.8a1": {5, 0, 8}} {
		if got := parseVersion(s); got != want {
			t.Errorf("%q: %v, want %v", s, got, want)
		}
	}
	if !(Version{3, 1, 5}).Before(Version{3, 1, 100}) || (Version{3, 2, 0}).Before(Version{3, 1, 100}) || (Version{4, 0, 0}).Before(Version{3, 9, 9}) || !(Version{2, 9, 9}).Before(Version{3, 0, 0}) {
		t.Error("versions are compared wrongly")
	}
}

func TestFrame(t *testing.T) {
	b := Frame{Tag: 101, Body: []byte("abc")}.Append(nil, 5)
	got, err := ReadFrame(bytes.NewReader(b), 3)
	if diff := cmp.Diff(Frame{Tag: 101, Body: []byte("abc")}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := ReadFrame(bytes.NewReader(b), 2); err == nil {
		t.Error("a longer message is read")
	}
	if _, err := ReadFrame(bytes.NewReader(b[:len(b)-1]), 3); err == nil {
		t.Error("a part of a message is read")
	}
}

// TestRequests: requests as libraries write them are read.
func TestRequests(t *testing.T) {
	for _, format := range []Format{{}, {Flex: true}} {
		write := func(parts ...func(w *Writer)) *Reader {
			w := Writer{Format: format}
			for _, p := range parts {
				p(&w)
			}
			return NewReader(format, w.Buf)
		}
		one := func(v Value) func(w *Writer) { return func(w *Writer) { w.Put(v.Type, v) } }
		proc := Value{ProcID, Proc{"s", AllRanks}}
		collect := Value{InfoEntry, Info{Key: "pmix.collect", Value: Num(Bool, 1)}}
		fence := write(one(Num(Size, 1)), one(proc), one(Num(Size, 1)), one(collect)).Fence()
		if diff := cmp.Diff(FenceRequest{[]Proc{{"s", AllRanks}}, []Info{collect.Data.(Info)}}, fence); diff != "" {
			t.Errorf("fence (-want +got):\n%s", diff)
		}
		get := write(one(Text("s")), one(Rank(2)), one(Num(Size, 0)), one(Text("k"))).Get()
		if diff := cmp.Diff(GetRequest{Proc: Proc{"s", 2}, Key: "k"}, get); diff != "" {
			t.Errorf("get (-want +got):\n%s", diff)
		}
		buffer := func(list ...KV) func(w *Writer) {
			return func(w *Writer) {
				in := Writer{Format: format}
				for _, kv := range list {
					in.KV(kv)
				}
				w.whole(wholes[Int32], 1)
				w.Buf = append(w.Buf, Plain)
				w.data(Bytes, in.Buf)
			}
		}
		r := write(one(Num(ScopeCode, 1)), buffer(KV{"a", Text("x")}), one(Num(ScopeCode, 2)), buffer(KV{"b", Text("y")}, KV{"c", Rank(1)}))
		commit := r.Commit()
		if diff := cmp.Diff(CommitRequest{[]KV{{"a", Text("x")}}, []KV{{"b", Text("y")}, {"c", Rank(1)}}}, commit); diff != "" || r.Err() != nil {
			t.Errorf("commit: %v (-want +got):\n%s", r.Err(), diff)
		}
		if got := write(one(Num(StatusCode, 7)), one(Text("why"))).Abort(); got != (AbortRequest{7, "why"}) {
			t.Errorf("abort: %+v", got)
		}
	}
}

// FuzzReader: whatever comes is read without harm, and what was read is written and
// read again as the same.
func FuzzReader(f *testing.F) {
	f.Add(true, []byte{2, byte(Array), 0x18, 1, 4, 'a', 0, 0, 3, 4, 'b', 0})
	f.Add(false, []byte{0, 0, 0, 1, 0, byte(Size), 0, 15, 0, 0, 0, 0, 0, 0, 0, 2})
	f.Fuzz(func(t *testing.T, flex bool, b []byte) {
		format := Format{Flex: flex}
		for _, of := range []Type{AnyValue, Pair, InfoEntry, ProcID, Array, PID, Timeval} {
			r := NewReader(format, b)
			list := r.List(of)
			if r.Err() != nil {
				continue
			}
			w := Writer{Format: format}
			w.Put(of, list...)
			again := NewReader(format, w.Buf)
			if diff := cmp.Diff(list, again.List(of)); diff != "" || again.Err() != nil {
				t.Errorf("%x as type %d: %v (-read +again):\n%s", b, of, again.Err(), diff)
			}
		}
		for _, read := range []func(*Reader){func(r *Reader) { r.Commit() }, func(r *Reader) { r.Fence() }, func(r *Reader) { r.Get() }, func(r *Reader) { r.Abort() }, func(r *Reader) { r.Log(Version{4, 0, 0}) }} {
			read(NewReader(format, b))
		}
		_, _ = ReadHello(bytes.NewReader(b))
		_, _ = ReadFrame(bytes.NewReader(b), 1<<10)
		_, _ = parseHello(b)
	})
}
