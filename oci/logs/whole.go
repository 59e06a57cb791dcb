package logs

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"time"
)

// MaxWhole is how long a log may be that is kept as a Whole: its sum is that of one block.
const MaxWhole = sumBlock

// Whole is a log that is kept in no directory of its own: all of it was written at one moment,
// and nothing is added.
type Whole struct {
	Data []byte
	Sum  uint32 // of Data as it was written: where it is another one, the disk has changed Data
	At   time.Time
}

// SumOf is the sum of a log's bytes.
func SumOf(data []byte) uint32 { return crc32.Checksum(data, castagnoli()) }

// Open reads it like any other log.
func (w Whole) Open() *Log { return &Log{whole: &w, ended: func() bool { return true }} }

// Damaged says that the disk has changed it.
func (w Whole) Damaged() bool { return SumOf(w.Data) != w.Sum }

func (w Whole) end() int64 { return int64(len(w.Data)) }

func (w Whole) readAt(off int64) (Chunk, error) {
	switch {
	case off >= w.end():
		return Chunk{}, io.EOF
	case w.Damaged():
		return Chunk{Offset: w.end(), Dropped: w.end() - off, Damaged: w.end() - off}, nil
	}
	return Chunk{Offset: off, Data: w.Data[off:]}, nil
}

// since is where the output begins that was written at t or later.
func (w Whole) since(t time.Time) int64 {
	if w.At.Add(markSpan(0)).Before(t) {
		return w.end()
	}
	return 0
}

// File is one of the files of a log.
type File struct {
	Name string
	Data []byte
}

// Files are those of a directory with this log in it, as a Writer makes them.
func (w Whole) Files() []File {
	list := []File{{segmentName(0), w.Data}}
	if len(w.Data) == 0 {
		return list
	}
	var mark [markSize]byte
	putMark(mark[:], 0, w.At)
	sum := binary.BigEndian.AppendUint32(nil, uint32(len(w.Data)))
	sum = binary.BigEndian.AppendUint32(sum, w.Sum)
	return append(list, File{sumName(0), sum}, File{fileTimes, mark[:]})
}

// WholeOf is the inverse of Files. It is not ok for a log that is longer, or was not written at
// one moment. A log without a byte has no time.
func WholeOf(files []File) (w Whole, ok bool) {
	byName := map[string][]byte{}
	for _, f := range files {
		byName[f.Name] = f.Data
	}
	data, there := byName[segmentName(0)]
	if !there || len(data) > MaxWhole || len(byName) != len(files) {
		return Whole{}, false
	}
	if len(data) == 0 {
		return Whole{Data: data, Sum: SumOf(nil)}, len(files) == 1
	}
	sum, mark := byName[sumName(0)], byName[fileTimes]
	if len(files) != 3 || len(sum) != sumSize || len(mark) != markSize || int(binary.BigEndian.Uint32(sum)) != len(data) {
		return Whole{}, false
	}
	off, at, ok := readMark(mark)
	return Whole{Data: data, Sum: binary.BigEndian.Uint32(sum[4:]), At: at}, ok && off == 0
}
