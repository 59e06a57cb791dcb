package store

import (
	"encoding/binary"
	"fmt"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// Keys are one byte of kind, then the job's number as 8 bytes big endian, then
// for kinds with several records a job 8 bytes of sequence; or the kind, then
// a name; or the kind, then a sequence that others sort by. docs/keyspace.md has the table.
func key(r state.Record) []byte {
	k := []byte{byte(r.Kind)}
	switch r.Kind {
	case state.KindNode, state.KindPast, state.KindUsage, state.KindStored, state.KindWindow, state.KindUUID, state.KindToken, state.KindNodeKey, state.KindProject, state.KindKeyFile, state.KindIDs:
		return append(k, r.Name...)
	case state.KindAudit, state.KindBusy:
		return binary.BigEndian.AppendUint64(k, r.Seq)
	case state.KindDay:
		return append(binary.BigEndian.AppendUint64(k, r.Seq), r.Name...)
	case state.KindEnded:
		return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(k, r.Seq), uint64(r.Job))
	case state.KindEvent, state.KindAttempt, state.KindTasks, state.KindLaunch, state.KindNotice:
		k = binary.BigEndian.AppendUint64(k, uint64(r.Job))
		return binary.BigEndian.AppendUint64(k, r.Seq)
	}
	return binary.BigEndian.AppendUint64(k, uint64(r.Job))
}

// value is what is stored. The UUID index holds the number.
func value(r state.Record) []byte {
	if r.Kind == state.KindUUID {
		return binary.BigEndian.AppendUint64(nil, uint64(r.Job))
	}
	return r.Value
}

// record is the inverse of key and value. The value is not copied.
func record(k, v []byte) (state.Record, error) {
	bad := func() (state.Record, error) { return state.Record{}, fmt.Errorf("stored key %x is malformed", k) }
	if len(k) < 2 {
		return bad()
	}
	r := state.Record{Kind: state.Kind(k[0]), Value: v}
	k = k[1:]
	switch r.Kind {
	case state.KindNode, state.KindPast, state.KindUsage, state.KindStored, state.KindWindow, state.KindToken, state.KindNodeKey, state.KindProject, state.KindKeyFile, state.KindIDs:
		r.Name = string(k)
	case state.KindUUID:
		if len(v) != 8 {
			return bad()
		}
		r.Name, r.Job, r.Value = string(k), job.Number(binary.BigEndian.Uint64(v)), nil
	case state.KindDay:
		if len(k) < 8 {
			return bad()
		}
		r.Seq, r.Name = binary.BigEndian.Uint64(k), string(k[8:])
	case state.KindEnded:
		if len(k) != 16 {
			return bad()
		}
		r.Seq, r.Job = binary.BigEndian.Uint64(k), job.Number(binary.BigEndian.Uint64(k[8:]))
	case state.KindAudit, state.KindBusy:
		if len(k) != 8 {
			return bad()
		}
		r.Seq = binary.BigEndian.Uint64(k)
	case state.KindEvent, state.KindAttempt, state.KindTasks, state.KindLaunch, state.KindNotice:
		if len(k) != 16 {
			return bad()
		}
		r.Job, r.Seq = job.Number(binary.BigEndian.Uint64(k)), binary.BigEndian.Uint64(k[8:])
	default:
		if len(k) != 8 {
			return bad()
		}
		r.Job = job.Number(binary.BigEndian.Uint64(k))
	}
	return r, nil
}

// Keys of the store itself; 'm' is no kind of record.
var (
	keyFormat  = []byte("m/format")
	keyEpoch   = []byte("m/epoch")
	keyMark    = []byte("m/mark")
	keyStarts  = []byte("m/starts")
	keyWitness = []byte("m/witness")
	keyTime    = []byte("m/time")
)

// after is the smallest key that does not begin with prefix.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}
