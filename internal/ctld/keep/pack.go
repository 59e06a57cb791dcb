package keep

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gbatch/oci/logs"
)

// A pack is a file with many small logs, one behind the other: for each a head of
// fixed size, big-endian, and its bytes.
//
//	0  4   packMagic
//	4  4   how many bytes
//	8  24  the job's UUID, 16 bytes; attempt; rank
//	32 8   when it came here, in Unix milliseconds
//	40 8   when it was written
//	48 4   CRC-32C of its bytes
//	52 4   CRC-32C of the head so far
//	56 4   the word, which alone changes, padded by zeros
//
// It is only appended to, by the controller that began it. What a power cut left of the
// last append is no log. Where a head is damaged, the next whole one is looked for.
const (
	packMagic = "gbL\x01"
	packHead  = 60
	headSum   = 52
	headWord  = 56
	wordBytes = packHead - headWord
)

// name is a small log's among those of its user.
type name struct {
	uuid          [16]byte
	attempt, rank uint32
}

// nameOf is not ok for what is no UUID in its usual form: such a log has a directory.
func nameOf(k Key) (n name, ok bool) {
	n.attempt, n.rank = k.Attempt, k.Rank
	if len(k.UUID) != uuidLen {
		return n, false
	}
	digits := k.UUID[:8] + k.UUID[9:13] + k.UUID[14:18] + k.UUID[19:23] + k.UUID[24:]
	if _, err := hex.Decode(n.uuid[:], []byte(digits)); err != nil {
		return n, false
	}
	return n, n.key(k.User) == k
}

// key is the inverse of nameOf.
func (n name) key(user string) Key {
	u := n.uuid
	return Key{User: user, UUID: fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:]), Attempt: n.attempt, Rank: n.rank}
}

// small is one log in a pack.
type small struct {
	name
	word      byte // the place of its word in packWords
	bad       bool // its bytes were damaged when the pack was read: its node may send it again
	off, size uint32
	came      int64 // Unix milliseconds
}

// packWords are the words that a log may have in its head, where they take less: see fileComplete.
var packWords = [...]struct{ word, head string }{{"", ""}, {wordDue, "due"}, {wordArchived, "arch"}, {wordCopied, "copy"}}

// wordPlace is that of a word in packWords.
func wordPlace(word string) byte {
	for i, w := range packWords {
		if w.word == word {
			return byte(i)
		}
	}
	return 0
}

// appendLog puts a log behind a pack's bytes.
func appendLog(pack []byte, s small, w logs.Whole) []byte {
	at := len(pack)
	pack = append(pack, packMagic...)
	pack = binary.BigEndian.AppendUint32(pack, uint32(len(w.Data)))
	pack = append(pack, s.uuid[:]...)
	pack = binary.BigEndian.AppendUint32(pack, s.attempt)
	pack = binary.BigEndian.AppendUint32(pack, s.rank)
	pack = binary.BigEndian.AppendUint64(pack, uint64(s.came))
	pack = binary.BigEndian.AppendUint64(pack, uint64(w.At.UnixMilli()))
	pack = binary.BigEndian.AppendUint32(pack, w.Sum)
	pack = binary.BigEndian.AppendUint32(pack, logs.SumOf(pack[at:]))
	pack = append(pack, headWordOf(s.word)...)
	return append(pack, w.Data...)
}

func headWordOf(place byte) []byte {
	out := make([]byte, wordBytes)
	copy(out, packWords[place].head)
	return out
}

// readHead reads a log's head, without its place. It is not ok where the head is damaged.
func readHead(b []byte) (s small, w logs.Whole, ok bool) {
	if len(b) < packHead || string(b[:4]) != packMagic || logs.SumOf(b[:headSum]) != binary.BigEndian.Uint32(b[headSum:]) {
		return small{}, logs.Whole{}, false
	}
	s.size = binary.BigEndian.Uint32(b[4:])
	copy(s.uuid[:], b[8:])
	s.attempt, s.rank = binary.BigEndian.Uint32(b[24:]), binary.BigEndian.Uint32(b[28:])
	s.came = int64(binary.BigEndian.Uint64(b[32:]))
	for i := range packWords { // at worst it is archived once more, or not
		if bytes.Equal(b[headWord:packHead], headWordOf(byte(i))) {
			s.word = byte(i)
		}
	}
	w.At, w.Sum = time.UnixMilli(int64(binary.BigEndian.Uint64(b[40:]))), binary.BigEndian.Uint32(b[48:])
	return s, w, s.size <= logs.MaxWhole
}

// readPack says which logs are in a pack, how many bytes between them are of no log,
// and how many behind the last, as a write leaves them that did not come to its end.
func readPack(b []byte) (list []small, damaged, tail int64) {
	for off := 0; off < len(b); {
		s, w, ok := readHead(b[off:])
		if end := off + packHead + int(s.size); ok && end <= len(b) {
			s.off, s.bad = uint32(off), logs.SumOf(b[off+packHead:end]) != w.Sum
			list = append(list, s)
			off, damaged, tail = end, damaged+tail, 0
			continue
		}
		next := bytes.Index(b[off+1:], []byte(packMagic))
		if next < 0 {
			return list, damaged, tail + int64(len(b)-off)
		}
		tail += int64(next + 1)
		off += next + 1
	}
	return list, damaged, tail
}

// readSmall reads a log. What the disk does not give, or has changed, is damaged.
func readSmall(path string, s small) (logs.Whole, error) {
	f, err := openPack(path)
	if err != nil {
		return logs.Whole{}, err
	}
	defer f.Close()
	b := make([]byte, packHead+int(s.size))
	n, err := f.ReadAt(b, int64(s.off))
	is, w, ok := readHead(b[:n])
	w.Data = b[packHead:]
	if is.off, is.word, is.bad = s.off, s.word, s.bad; err != nil || !ok || is != s {
		w.Sum = ^logs.SumOf(w.Data)
	}
	return w, nil
}

// openPack waits for nobody, whatever is there.
func openPack(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(err, f.Close(), fmt.Errorf("%s is no file", path))
	}
	return f, nil
}

// packDir is where a user's packs are, below the store's directory.
func packDir(user string) string { return filepath.Join(userDir(user), "small") }

func packName(n uint64) string { return fmt.Sprintf("%020d.pack", n) }

// packsIn lists the packs of a directory by their numbers, ascending.
func packsIn(dir string) (list []uint64, err error) {
	files, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for _, f := range files {
		digits, is := strings.CutSuffix(f.Name(), ".pack")
		if n, err := strconv.ParseUint(digits, 10, 64); is && err == nil && packName(n) == f.Name() {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list, err
}

// maxPackRead bounds what is read of a pack: more is in none.
const maxPackRead = 64 << 20

func readPackFile(path string) ([]byte, error) {
	f, err := openPack(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxPackRead))
}
