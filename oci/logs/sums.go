package logs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Beside each of the log's files stands one with sums, so that bytes that the disk
// has changed, lost or cannot read are known when the log is read: for each block of
// the file how many of its bytes are covered, and their CRC-32C. The sum of a block
// is written after its bytes, again with each write to it, so what is behind the
// covered bytes has just come, or met a full disk, and is not known to be whole. A
// file of an earlier version has no sums.

const (
	sumBlock = 4096
	sumSize  = 8 // how many bytes are covered, and their sum, big-endian
)

// castagnoli is the one table of its kind, which the library makes when it is first asked.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func sumName(off int64) string { return strings.TrimSuffix(segmentName(off), ".log") + ".sum" }

// sums writes those of one file. It has one owner.
type sums struct {
	path string
	file *os.File // nil: nothing was written yet, or it cannot be
	bad  bool     // it cannot be: the log's file does without
	at   int64    // bytes in the log's file
	sum  uint32   // of those in its last block
}

// add takes in what was written behind the last byte. A sum that cannot be written leaves
// its bytes uncovered, until the next one of that block.
func (s *sums) add(p []byte) {
	place := s.at / sumBlock * sumSize
	var out []byte
	for len(p) > 0 {
		in := int(s.at % sumBlock)
		if in == 0 {
			s.sum = 0
		}
		n := min(len(p), sumBlock-in)
		s.sum = crc32.Update(s.sum, castagnoli(), p[:n])
		s.at += int64(n)
		p = p[n:]
		out = binary.BigEndian.AppendUint32(out, uint32(in+n))
		out = binary.BigEndian.AppendUint32(out, s.sum)
	}
	if s.file == nil && !s.bad && len(out) > 0 {
		f, err := os.OpenFile(s.path, os.O_WRONLY|os.O_CREATE, 0o640)
		s.file, s.bad = f, err != nil
	}
	if s.file != nil {
		_, _ = s.file.WriteAt(out, place)
	}
}

// back takes back what was added since s was was, as the log's file is cut there.
func (s *sums) back(was sums) error {
	was.file, was.bad = s.file, s.bad
	*s = was
	if s.file == nil {
		return nil
	}
	end := s.at / sumBlock * sumSize
	if err := s.file.Truncate(end); err != nil || s.at%sumBlock == 0 {
		return err
	}
	out := binary.BigEndian.AppendUint32(nil, uint32(s.at%sumBlock))
	_, err := s.file.WriteAt(binary.BigEndian.AppendUint32(out, s.sum), end)
	return err
}

func (s *sums) close() {
	if s.file != nil {
		s.file.Close()
		s.file = nil
	}
}

// resumeSums cuts the last file of a log, which begins at off, before the first of its blocks that
// is damaged: whoever has those bytes still shall send them again. It returns the file's
// size and its sums, to go on with.
func resumeSums(dir string, off int64) (size int64, s sums, err error) {
	l := Log{dir: dir}
	defer l.Close()
	if err := l.open(off); err != nil {
		return 0, s, err
	}
	s.path = filepath.Join(dir, sumName(off))
	for {
		data, bad := l.read(s.at)
		if bad > 0 {
			cut := errors.Join(os.Truncate(filepath.Join(dir, segmentName(off)), s.at), os.Truncate(s.path, s.at/sumBlock*sumSize))
			return s.at, s, cut
		}
		if len(data) == 0 {
			break
		}
		s.at += int64(len(data))
	}
	if s.at%sumBlock > 0 {
		last, _, _ := l.block(s.at / sumBlock)
		s.sum = crc32.Checksum(last, castagnoli())
	}
	if s.file, err = os.OpenFile(s.path, os.O_WRONLY, 0); errors.Is(err, os.ErrNotExist) {
		err = nil // of an earlier version, or empty
		s.bad = s.at > 0
	}
	return s.at, s, err
}

// sumOf is what is known of a block of the open file: how many bytes are covered, and
// their sum. No bytes have the sum 0.
func (l *Log) sumOf(i int64) (covered int, sum uint32) {
	var b [sumSize]byte
	if l.sums == nil {
		return 0, 0
	}
	if n, _ := l.sums.ReadAt(b[:], i*sumSize); n < sumSize {
		return 0, 0
	}
	return int(min(binary.BigEndian.Uint32(b[:4]), sumBlock)), binary.BigEndian.Uint32(b[4:])
}

// block reads a block of the open file: its bytes, how many they should be, and whether they are
// not what was written. Its sum is read first: what that covers is there then. It is looked
// at twice, as its sum may be written at the moment.
func (l *Log) block(i int64) (data []byte, size int, damaged bool) {
	for range 2 {
		covered, sum := l.sumOf(i)
		buf := make([]byte, sumBlock)
		n, err := 0, io.EOF
		if l.file != nil {
			n, err = l.file.ReadAt(buf, i*sumBlock)
		}
		data, size = buf[:n], max(n, covered)
		damaged = covered > n || crc32.Checksum(data[:min(covered, n)], castagnoli()) != sum
		if err != nil && !errors.Is(err, io.EOF) { // the disk does not give it
			damaged = true
			if st, err := l.file.Stat(); err == nil {
				size = max(size, int(min(sumBlock, st.Size()-i*sumBlock)))
			}
		}
		if !damaged {
			break
		}
	}
	return data, size, damaged
}

// read gives what the open file has at a place of it: how many bytes there are damaged, and
// those behind them that are whole, at most 64 KiB.
func (l *Log) read(at int64) (data []byte, bad int64) {
	for i := at / sumBlock; len(data) < maxChunk; i++ {
		b, size, damaged := l.block(i)
		skip := max(0, at-i*sumBlock)
		if int64(size) <= skip || damaged && len(data) > 0 {
			break
		}
		if damaged {
			bad += int64(size) - skip
		} else {
			data = append(data, b[skip:]...)
		}
		if size < sumBlock {
			break
		}
	}
	return data[:min(len(data), maxChunk)], bad
}

// length is how long the file is, or was, that begins at off.
func length(dir string, off int64) (int64, error) {
	size := int64(0)
	st, err := os.Stat(filepath.Join(dir, segmentName(off)))
	if err == nil {
		size = st.Size()
	}
	f, sumErr := openFile(filepath.Join(dir, sumName(off)))
	if sumErr != nil {
		return size, err
	}
	defer f.Close()
	if st, err = f.Stat(); err != nil || !st.Mode().IsRegular() { // what is no file says nothing
		return size, err
	}
	if last := st.Size()/sumSize - 1; last >= 0 {
		l := Log{sums: f}
		covered, _ := l.sumOf(last)
		size = max(size, last*sumBlock+int64(covered))
	}
	return size, nil
}

// Verify reads all of a log and returns how many of its bytes are damaged. It calls
// pace before so many bytes are read.
func (l *Log) Verify(pace func(bytes int64) error) (damaged int64, err error) {
	for off := int64(0); ; {
		if err := pace(maxChunk); err != nil {
			return damaged, err
		}
		c, err := l.ReadAt(off)
		if errors.Is(err, io.EOF) {
			return damaged, nil
		}
		if err != nil {
			return damaged, fmt.Errorf("verify log: %w", err)
		}
		damaged += c.Damaged
		off = c.Offset + int64(len(c.Data))
	}
}
