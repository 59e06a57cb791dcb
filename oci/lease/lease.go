package lease

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"time"

	"gbatch/oci/atomicfile"
	"gbatch/oci/boot"
)

// Lease is the content of a lease's file: until when the container may
// run without anybody saying more. Its owner replaces the file as a whole to
// renew it.
type Lease struct {
	// UntilMS is a moment of the clock that runs from boot and through sleep
	// (CLOCK_BOOTTIME), in milliseconds, so that steps of the wall clock do not
	// touch it.
	UntilMS int64 `json:"untilMs"`
	// GuardMS is the same for a Guard, somewhat later: what the shims have not ended
	// by then it ends.
	GuardMS int64 `json:"guardMs,omitempty"`
}

// Left is how long a shim's container may go on.
func Left(file string) (time.Duration, error) {
	l, err := read(file)
	if err != nil {
		return 0, err
	}
	return untilBoot(l.UntilMS), nil
}

// guardLeft is how long a guard leaves containers to their shims.
func guardLeft(file string) (time.Duration, error) {
	l, err := read(file)
	if err != nil {
		return 0, err
	}
	return untilBoot(max(l.GuardMS, l.UntilMS)), nil
}

func read(file string) (l Lease, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return l, fmt.Errorf("read lease: %w", err)
	}
	if err := Decode(data, &l); err != nil {
		return l, fmt.Errorf("read lease %s: %w", file, err)
	}
	return l, nil
}

// sumField is the last one of a file, and has the sum of all before it.
const sumField = `,"sum":"`

// Encode is the content of a lease's file, an object that has the fields of a Lease and maybe others. Who reads it sees whether it was
// changed. The sum is a field, as shims of earlier versions read the file, too.
func Encode(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return summed(data[:len(data)-1]), nil
}

// summed is an object, of which all is given but its end, with the sum.
func summed(fields []byte) []byte {
	return fmt.Appendf(bytes.Clone(fields), `%s%08x"}`, sumField, crc32.Checksum(fields, crc32.MakeTable(crc32.Castagnoli)))
}

// Decode is the inverse of Encode, and takes what an earlier version has written without a sum. What is another than was written wraps
// atomicfile.ErrDamaged.
func Decode(data []byte, v any) error {
	at := bytes.LastIndex(data, []byte(sumField))
	if at >= 0 && !bytes.Equal(summed(data[:at]), data) {
		return atomicfile.ErrDamaged
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%w: %w", atomicfile.ErrDamaged, err)
	}
	return nil
}

// untilBoot is how far a moment of the clock that runs from boot is away.
func untilBoot(ms int64) time.Duration { return time.Duration(ms)*time.Millisecond - boot.Elapsed() }
