package replica

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/raft"
)

// The log on disk checks what was written last, and nothing else: an entry that the disk has changed would be applied, or given to
// another member, as it is. So each has a sum with it, in the place that the library has for that. Entries
// of earlier versions have none.
const sumVersion = 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumOf is that of an entry.
func sumOf(l *raft.Log) []byte {
	head := binary.BigEndian.AppendUint64(make([]byte, 0, 17), l.Index)
	head = append(binary.BigEndian.AppendUint64(head, l.Term), byte(l.Type))
	return binary.BigEndian.AppendUint32([]byte{sumVersion}, crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, l.Data))
}

// StoreLog is StoreLogs of one.
func (h heard) StoreLog(l *raft.Log) error { return h.StoreLogs([]*raft.Log{l}) }

// StoreLogs makes entries durable, each with its sum, and has the machine hear of them.
func (h heard) StoreLogs(all []*raft.Log) error {
	for _, l := range all {
		l.Extensions = sumOf(l)
	}
	if err := h.WAL.StoreLogs(all); err != nil {
		h.machine.notWritten(err)
		return err
	}
	h.machine.unwritten.Store(false)
	for _, l := range all {
		h.machine.Hear(l)
	}
	return nil
}

// GetLog reads an entry. One that is not as it was written is as one that is not there, where a copy of the store has what it had:
// the copy is then sent in its place. Else this member ends.
func (h heard) GetLog(index uint64, l *raft.Log) error {
	if err := h.WAL.GetLog(index, l); err != nil || len(l.Extensions) == 0 || l.Extensions[0] != sumVersion || bytes.Equal(l.Extensions, sumOf(l)) {
		return err
	}
	err := fmt.Errorf("entry %d of the common log is damaged: %s", index, again)
	if copied, errCopy := h.copied(); errCopy == nil && index <= copied {
		h.machine.log.Error("an entry of the common log is damaged; a copy of the store is used in its place. Look at the disk", "entry", index)
		return raft.ErrLogNotFound
	}
	h.machine.fail(err)
	return err
}
