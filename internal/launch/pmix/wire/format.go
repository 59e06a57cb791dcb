package wire

import "math"

// Format says how numbers are written. A client names the format that it uses when
// it connects.
type Format struct {
	Flex bool // seven bits a byte, as many bytes as it takes; else of fixed size
}

// Formats are those that clients may name.
var Formats = map[string]Format{"v21": {}, "v3": {}, "v4": {Flex: true}, "v41": {Flex: true}}

// Plain is the type of a buffer in which only those values are described whose
// type could be another on another machine.
const Plain = 1

// Type is the type of a value.
type Type uint16

// The types of values, by their numbers on the wire.
const (
	Undefined  Type = 0
	Bool       Type = 1
	Byte       Type = 2
	String     Type = 3
	Size       Type = 4
	PID        Type = 5
	Int        Type = 6
	Int8       Type = 7
	Int16      Type = 8
	Int32      Type = 9
	Int64      Type = 10
	Uint       Type = 11
	Uint8      Type = 12
	Uint16     Type = 13
	Uint32     Type = 14
	Uint64     Type = 15
	Float      Type = 16
	Double     Type = 17
	Timeval    Type = 18
	Time       Type = 19
	StatusCode Type = 20
	AnyValue   Type = 21
	ProcID     Type = 22
	InfoEntry  Type = 24
	Bytes      Type = 27
	Pair       Type = 28
	Persist    Type = 30
	Pointer    Type = 31
	ScopeCode  Type = 32
	Range      Type = 33
	CommandNo  Type = 34
	Directives Type = 35
	TypeNo     Type = 36
	ProcState  Type = 37
	Array      Type = 39
	RankNo     Type = 40
	Packed     Type = 42 // a string, compressed
	AllocNo    Type = 43
	Channel    Type = 45
	Envar      Type = 46
	JobState   Type = 50
	LinkState  Type = 51
	DeviceType Type = 57
	Locality   Type = 58
	PackedData Type = 59 // bytes, compressed
	Namespace  Type = 60
)

// whole are the types that are written as one number, and how.
type whole struct {
	bits   int // 8, 16, 32 or 64
	signed bool
	tagged bool // the width goes before it, where it is fixed
	always bool // and where it is not
}

var wholes = map[Type]whole{
	Bool: {bits: 8}, Byte: {bits: 8}, Int8: {bits: 8}, Uint8: {bits: 8}, Persist: {bits: 8}, Pointer: {bits: 8}, ScopeCode: {bits: 8}, Range: {bits: 8},
	CommandNo: {bits: 8}, ProcState: {bits: 8}, AllocNo: {bits: 8}, JobState: {bits: 8}, LinkState: {bits: 8},
	Int16: {bits: 16, signed: true}, Uint16: {bits: 16}, TypeNo: {bits: 16}, Channel: {bits: 16}, Locality: {bits: 16},
	Int32: {bits: 32, signed: true}, Uint32: {bits: 32}, StatusCode: {bits: 32, signed: true}, Directives: {bits: 32}, RankNo: {bits: 32},
	Int64: {bits: 64, signed: true}, Uint64: {bits: 64}, Time: {bits: 64}, DeviceType: {bits: 64},
	Size: {bits: 64, tagged: true}, Int: {bits: 32, signed: true, tagged: true}, Uint: {bits: 32, tagged: true}, PID: {bits: 32, tagged: true, always: true},
}

// tag is the type that says how wide a number is.
func (w whole) tag() Type {
	switch {
	case w.bits == 64:
		return Uint64
	case w.signed:
		return Int32
	}
	return Uint32
}

// limit is the highest number of so many bits.
func limit(bits int) uint64 { return math.MaxUint64 >> (64 - bits) }

// Ranks that are none.
const (
	NoRank    = math.MaxUint32     // whichever has it
	AllRanks  = math.MaxUint32 - 1 // of a namespace
	NodeRanks = math.MaxUint32 - 2 // on the same node
	NodePeers = math.MaxUint32 - 4 // on the same node, of the same namespace
)

// Status is how something went.
type Status int32

// What a server answers.
const (
	OK           Status = 0
	Failed       Status = -1
	UnknownType  Status = -16
	Unreadable   Status = -20
	TimedOut     Status = -24
	BadParameter Status = -27
	TooMuch      Status = -29
	NotFound     Status = -46
	NotSupported Status = -47
)
