package atomicfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"syscall"
)

// ErrDamaged says that a file is not what was written.
var ErrDamaged = errors.New("the file was damaged on the disk")

const sumMark = "\n#crc32c "

// Sum is data with a line behind it by which Read knows whether the disk has changed it. What
// reads such a file in another way must not mind the line.
func Sum(data []byte) []byte {
	return fmt.Appendf(bytes.Clone(data), "%s%08x\n", sumMark, crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
}

// Read reads a file, and takes the line off that Sum has put there, with blanks behind it. A file
// of an earlier version has none. A file that has another sum, or that the disk cannot read, wraps ErrDamaged.
func Read(path string) ([]byte, error) {
	all, err := readAll(path)
	if err != nil {
		return nil, err
	}
	text := bytes.TrimRight(all, " ")
	at := bytes.LastIndex(text, []byte(sumMark))
	if at < 0 {
		return all, nil
	}
	if data := text[:at]; bytes.Equal(Sum(data), text) {
		return data, nil
	}
	return nil, fmt.Errorf("read %s: %w", path, ErrDamaged)
}

func readAll(path string) ([]byte, error) {
	all, err := os.ReadFile(path)
	if errors.Is(err, syscall.EIO) || errors.Is(err, syscall.EISDIR) {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return all, err
}

// ReadLast is Read for the last part of a file of several, each of which has a Sum of its own and blanks around it,
// whatever became of the others.
func ReadLast(path string) ([]byte, error) {
	all, err := readAll(path)
	if err != nil {
		return nil, err
	}
	rest := bytes.TrimLeft(all, " ")
	end := EndOfPart(rest)
	if end < 0 {
		return all, nil // of an earlier version
	}
	for end >= 0 && len(bytes.TrimLeft(rest[end:], " ")) > 0 {
		rest = bytes.TrimLeft(rest[end:], " ")
		end = EndOfPart(rest)
	}
	if end >= 0 {
		if data := rest[:bytes.Index(rest, []byte(sumMark))]; bytes.Equal(Sum(data), rest[:end]) {
			return data, nil
		}
	}
	return nil, fmt.Errorf("read %s: %w", path, ErrDamaged)
}

// EndOfPart is where the first part of a text ends, with its sum; -1: it has none.
func EndOfPart(text []byte) int {
	at := bytes.Index(text, []byte(sumMark))
	if end := at + len(sumMark) + len("00000000\n"); at >= 0 && end <= len(text) {
		return end
	}
	return -1
}

// ReadJSON reads a value from what Read gives. Text that is none wraps ErrDamaged.
func ReadJSON(path string, v any) error {
	data, err := Read(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("read %s: %w: %w", path, ErrDamaged, err)
	}
	return nil
}

// PutJSON writes a new file with a value, and where that is asked for with its Sum. It need
// not be whole after a power cut.
func PutJSON(path string, v any, sum bool) error {
	data, err := json.Marshal(v)
	if err == nil {
		if sum {
			data = Sum(data)
		}
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
