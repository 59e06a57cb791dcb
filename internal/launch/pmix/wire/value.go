package wire

// Value is one value. Data is, by its type: a uint64 or int64 of those that are
// numbers, a string, []byte, Proc, Info, KV, Value, Items of an array, [2]int64 of
// a time in seconds and microseconds, [3]string of a variable with its separator,
// and nil of an undefined one.
type Value struct {
	Type Type
	Data any
}

// Proc is a process: one rank of a namespace.
type Proc struct {
	Space string
	Rank  uint32
}

// Info is a named value that says how something is to be done.
type Info struct {
	Key   string
	Flags uint32
	Value Value
}

// KV is a value by its key, as processes give them to each other.
type KV struct {
	Key   string
	Value Value
}

// Items are the values of an array, all of one type.
type Items struct {
	Of   Type
	List []Value
}

// Num is a value that is a number.
func Num(t Type, n uint64) Value {
	if wholes[t].signed {
		return Value{t, int64(n)}
	}
	return Value{t, n}
}

// Text is one that is a string.
func Text(s string) Value { return Value{String, s} }

// Rank is one that is a rank.
func Rank(n int) Value { return Num(RankNo, uint64(n)) }

// Infos is an array of named values.
func Infos(list ...KV) Value {
	items := Items{Of: InfoEntry}
	for _, kv := range list {
		items.List = append(items.List, Value{InfoEntry, Info{Key: kv.Key, Value: kv.Value}})
	}
	return Value{Array, items}
}

// Number is a value's number; 0 if it is none.
func (v Value) Number() uint64 {
	switch n := v.Data.(type) {
	case uint64:
		return n
	case int64:
		return uint64(n)
	}
	return 0
}

// True tells whether a directive says yes: it need have no value.
func (i Info) True() bool { return i.Value.Type == Undefined || i.Value.Number() != 0 }
