package store

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// errBatch is of a batch from another member that no store makes.
var errBatch = errors.New("it is no batch of a store")

// batchHeader is what a batch begins with: a number that the database gives it, and
// the count of its entries.
const batchHeader = 8 + 4

// readBatch gives the entries of a batch to take, if there is one, and an error unless
// all of it is what a store commits. The database believes what a batch says of its own
// lengths; so this is asked before it sees one that another member has sent.
func readBatch(batch []byte, take func(kind pebble.InternalKeyKind, k, v []byte) error) error {
	if len(batch) < batchHeader {
		return errBatch
	}
	count, rest := uint32(0), batch[batchHeader:]
	for ; len(rest) > 0; count++ {
		kind := pebble.InternalKeyKind(rest[0])
		k, after, ok := batchString(rest[1:])
		if !ok || len(k) == 0 {
			return errBatch
		}
		var v []byte
		switch kind {
		case pebble.InternalKeyKindDelete:
		case pebble.InternalKeyKindSet, pebble.InternalKeyKindRangeDelete:
			if v, after, ok = batchString(after); !ok {
				return errBatch
			}
		default:
			return fmt.Errorf("%w: it has an entry of kind %d", errBatch, kind)
		}
		if take != nil {
			if err := take(kind, k, v); err != nil {
				return err
			}
		}
		rest = after
	}
	if count != binary.LittleEndian.Uint32(batch[batchHeader-4:]) {
		return errBatch
	}
	return nil
}

// batchString takes one string off, whose length is before it.
func batchString(data []byte) (s, rest []byte, ok bool) {
	n, used := binary.Uvarint(data)
	if used <= 0 || used > binary.MaxVarintLen32 || n > uint64(len(data)-used) {
		return nil, nil, false
	}
	return data[used : used+int(n)], data[used+int(n):], true
}
