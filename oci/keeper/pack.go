package keeper

import (
	"encoding/binary"
	"errors"
)

// A message is numbers and texts, each text behind its length: there is one for each begin and end of a
// program, so it is not JSON.

func (o *Order) pack() []byte {
	b := packText(nil, o.Dir)
	for _, list := range [][]string{o.Args, o.Env} {
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, text := range list {
			b = packText(b, text)
		}
	}
	return b
}

func (o *Order) unpack(body []byte) error {
	r := unpacker{rest: body}
	o.Dir, o.Args, o.Env = r.text(), r.list(), r.list()
	return r.end()
}

func (w *Word) pack() []byte {
	left := uint64(0)
	if w.Left {
		left = 1
	}
	b := packText(packText(nil, w.Failure), w.Text)
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(w.Status)), left)
}

func (w *Word) unpack(body []byte) error {
	r := unpacker{rest: body}
	w.Failure, w.Text = r.text(), r.text()
	w.Status, w.Left = uint32(r.number()), r.number() != 0
	return r.end()
}

func packText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// unpacker takes a message apart. What comes after a mistake is empty.
type unpacker struct {
	rest []byte
	bad  bool
}

func (r *unpacker) number() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *unpacker) text() string {
	n := r.number()
	if n > uint64(len(r.rest)) {
		r.bad, r.rest = true, nil
		return ""
	}
	text := string(r.rest[:n])
	r.rest = r.rest[n:]
	return text
}

func (r *unpacker) list() (list []string) {
	for n := r.number(); n > 0 && !r.bad; n-- {
		list = append(list, r.text())
	}
	return list
}

func (r *unpacker) end() error {
	if r.bad || len(r.rest) > 0 {
		return errors.New("message is cut off, or longer than what it says")
	}
	return nil
}
