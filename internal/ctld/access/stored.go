package access

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"

	"gbatch/internal/api"
	"gbatch/internal/ctld/wire"
	"gbatch/internal/state"
)

// A token's record is its JSON, with a sum of the text before it as the last field: with one byte changed, a token
// could be another user's, or in force again after it was revoked.

const sumField = `,"sum":"`

// TokenRecord is a token as it is stored.
func TokenRecord(t api.Token) state.Record {
	t.Secret = ""
	text := bytes.TrimSuffix(wire.Encode(t), []byte("}"))
	return state.Record{Kind: state.KindToken, Name: t.ID, Value: fmt.Appendf(text, `%s%08x"}`, sumField, tokenSum(text))}
}

func tokenSum(text []byte) uint32 { return crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)) }

// StoredToken reads the record of a token. Those of earlier versions have no sum: they have to be a token's in all else.
func StoredToken(r state.Record) (t api.Token, err error) {
	text := r.Value
	if at := bytes.LastIndex(text, []byte(sumField)); at >= 0 {
		if want := fmt.Appendf(nil, `%s%08x"}`, sumField, tokenSum(text[:at])); !bytes.Equal(want, text[at:]) {
			return api.Token{}, errors.New("the token's record is damaged: its sum is another")
		}
		text = append(bytes.Clone(text[:at]), '}')
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields() // a field whose name was changed, the sum's too
	err = d.Decode(&t)
	switch {
	case err != nil:
	case d.InputOffset() != int64(len(text)):
		err = errors.New("something is behind it")
	case t.ID != r.Name:
		err = fmt.Errorf("it is of token %q", t.ID)
	}
	if err != nil {
		return api.Token{}, fmt.Errorf("the token's record is damaged: %w", err)
	}
	return t, nil
}
