package keeper

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMessages: what is sent is what is received, whatever bytes are in it.
func TestMessages(t *testing.T) {
	order := Order{Args: []string{"echo", "", "a\x00b\xff"}, Env: []string{"PATH=/bin"}, Dir: "/work"}
	var gotOrder Order
	if err := gotOrder.unpack(order.pack()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(order, gotOrder); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	for _, word := range []Word{{}, {Failure: NotFound, Text: "no such file"}, {Status: 1<<32 - 1, Left: true}} {
		var got Word
		if err := got.unpack(word.pack()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(word, got); diff != "" {
			t.Errorf("word (-want +got):\n%s", diff)
		}
	}
}

// FuzzMessages reads what a keeper, or whoever has its rights, may send: what is taken says the same when
// it is sent again, and a list is no longer than the message.
func FuzzMessages(f *testing.F) {
	f.Add((&Order{Args: []string{"true"}, Env: []string{"A=b"}, Dir: "/"}).pack())
	f.Add((&Word{Failure: Refused, Text: "why", Status: 256, Left: true}).pack())
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, m := range []struct{ first, again Message }{{new(Order), new(Order)}, {new(Word), new(Word)}} {
			if m.first.unpack(data) != nil {
				continue
			}
			body := m.first.pack()
			if err := m.again.unpack(body); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(m.again.pack(), body) {
				t.Errorf("%v is sent as something else the second time", m.first)
			}
			if o, ok := m.first.(*Order); ok && len(o.Args)+len(o.Env) > len(data) {
				t.Errorf("%d texts in %d bytes", len(o.Args)+len(o.Env), len(data))
			}
		}
	})
}
