package unpack

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containerd/containerd/v2/pkg/archive"
	"github.com/containerd/log"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"
)

const (
	whiteoutPrefix = ".wh."
	opaqueMarker   = ".wh..wh..opq"
	xattrPrefix    = "SCHILY.xattr."

	maxEntries = 10_000_000 // in one layer
	maxNames   = 256 << 20  // bytes of their names
)

// OpaqueXattr is overlay's mark, with the value y, of a directory that hides
// those of lower layers.
const OpaqueXattr = "trusted.overlay.opaque"

// Target is where a layer goes and what it must be.
type Target struct {
	Dir      string // exists and is empty; "": the layer is verified only
	DiffID   v1.Hash
	MaxBytes int64             // of its files
	MaxID    int               // of the users and groups that own its files
	Room     func(int64) error // is asked before each entry, for its bytes on disk
}

// Result is what a layer turned out to be.
type Result struct {
	Size    int64 // bytes of its files
	Entries int
	// Implicit are directories that files of the layer lie in, but that the
	// layer does not describe, as absolute paths in the layer. Sorted.
	Implicit []string
	// Opaque are directories that shall hide those of lower layers, relative
	// to the layer's. Sorted.
	Opaque []string
}

// Layer writes the layer read from r and verifies it. r is read to its end,
// so that its own verification happens too. An error is an *Error, with what r
// or Target.Room said in its chain, or ctx's.
func Layer(ctx context.Context, r io.Reader, to Target) (Result, error) {
	plain, done, err := decompress(r)
	if err != nil {
		return Result{}, explain(err)
	}
	defer done()
	u := &unpacking{Target: to, own: os.Geteuid(), explicit: map[string]bool{}, used: map[string]bool{}, opaque: map[string]uint64{}, owned: map[string]bool{}}
	hash := sha256.New()
	stream := io.TeeReader(&boundedReader{r: plain, left: 2*to.MaxBytes + 1<<20, max: to.MaxBytes}, hash)
	if to.Dir != "" {
		_, err = archive.Apply(log.WithLogger(ctx, silent), to.Dir, stream, archive.WithFilter(u.accept), archive.WithConvertWhiteout(u.place))
	}
	if err == nil {
		_, err = io.Copy(io.Discard, stream)
	}
	if err == nil {
		_, err = io.Copy(io.Discard, r)
	}
	if err != nil {
		return Result{}, explain(err)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != to.DiffID.Hex {
		return Result{}, fail(Corrupt, "unpacked it has digest sha256:%s, not %s", got, to.DiffID)
	}
	return Result{Size: u.bytes, Entries: u.entries, Implicit: u.implicit(), Opaque: u.opaqueDirs()}, nil
}

// silent keeps the library's remarks on odd entries out of the node's log:
// strangers could fill it.
var silent = logrus.NewEntry(&logrus.Logger{Out: io.Discard, Level: logrus.PanicLevel})

// unpacking watches the entries of one layer.
type unpacking struct {
	Target
	own      int   // our user id, which files that the layer does not describe have at first
	bytes    int64 // of the files
	names    int64 // of the entries, in bytes
	entries  int
	explicit map[string]bool   // directories that have an entry
	used     map[string]bool   // directories that entries lie in
	opaque   map[string]uint64 // directories to be marked, with their inode when that was asked
	owned    map[string]bool   // directories that are known to have an owner of the image's
}

// accept is called for each entry before anything is made of it. It may
// change the header.
func (u *unpacking) accept(h *tar.Header) (bool, error) {
	u.entries++
	if u.entries > maxEntries {
		return false, fail(Unsupported, "it has more than %d entries", maxEntries)
	}
	if u.names += int64(len(h.Name) + len(h.Linkname)); u.names > maxNames {
		return false, fail(Unsupported, "its entries have names of more than %d MiB in all", maxNames>>20)
	}
	if h.Uid < 0 || h.Gid < 0 || h.Uid > u.MaxID || h.Gid > u.MaxID {
		return false, fail(Unsupported, "it has files of user %d and group %d, where ids up to %d can be", h.Uid, h.Gid, u.MaxID)
	}
	// The header counts, not what was read: holes take no bytes in the tar.
	if u.bytes += h.Size; u.bytes > u.MaxBytes || u.bytes < 0 {
		return false, TooBig(u.MaxBytes)
	}
	if err := u.Room(onDisk(h)); err != nil {
		return false, err
	}
	switch h.Typeflag {
	case tar.TypeChar, tar.TypeBlock, tar.TypeXGlobalHeader:
		return false, nil // nothing opens a device from the store; /dev is made anew in each container
	}
	name := path.Clean("/" + h.Name)
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".wh..wh.") && part != opaqueMarker {
			return false, nil // bookkeeping of aufs
		}
	}
	for key := range h.PAXRecords {
		if attr, ok := strings.CutPrefix(key, xattrPrefix); ok && !keepXattr(attr) {
			delete(h.PAXRecords, key)
		}
	}
	if h.Typeflag == tar.TypeDir {
		u.explicit[name] = true
	}
	for dir := path.Dir(name); dir != "/" && !u.used[dir]; dir = path.Dir(dir) {
		u.used[dir] = true
	}
	return true, nil
}

// onDisk is about what an entry takes of the disk.
func onDisk(h *tar.Header) int64 {
	const block = 4096
	if h.Typeflag == tar.TypeDir {
		return block
	}
	return (h.Size + block - 1) / block * block
}

func (u *unpacking) implicit() []string {
	var dirs []string
	for dir := range u.used {
		if !u.explicit[dir] {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return dirs
}

// place is called when the directory of an entry is there. It writes whiteouts
// in overlay's form. A whiteout hides what is in lower layers, never what the
// same layer holds, in whatever order the two come; a directory that replaces
// one is opaque.
func (u *unpacking) place(h *tar.Header, name string) (bool, error) {
	base, dir := filepath.Base(name), filepath.Dir(name)
	if err := u.giveToRoot(dir); err != nil {
		return false, err
	}
	hidden, whiteout := strings.CutPrefix(base, whiteoutPrefix)
	switch {
	case base == opaqueMarker:
		return false, u.hide(dir)
	case whiteout:
		own := filepath.Join(dir, hidden)
		info, err := os.Lstat(own)
		if err != nil {
			return false, unix.Mknod(own, unix.S_IFCHR, 0)
		}
		if info.IsDir() {
			return false, u.hide(own)
		}
		return false, nil
	case h.Typeflag == tar.TypeDir && isWhiteout(name):
		if err := os.Remove(name); err != nil {
			return false, err
		}
		if err := os.Mkdir(name, 0o700); err != nil {
			return false, err
		}
		return true, u.hide(name)
	}
	return true, nil
}

// hide notes that a directory hides those of lower layers.
func (u *unpacking) hide(dir string) error {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return &os.PathError{Op: "lstat", Path: dir, Err: err}
	}
	u.opaque[dir] = st.Ino
	return nil
}

// opaqueDirs are those of which the layer did not make something else later.
func (u *unpacking) opaqueDirs() []string {
	var list []string
	for dir, ino := range u.opaque {
		var st unix.Stat_t
		if unix.Lstat(dir, &st) != nil || st.Ino != ino || st.Mode&unix.S_IFMT != unix.S_IFDIR {
			continue
		}
		if name, err := filepath.Rel(u.Dir, dir); err == nil {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// giveToRoot makes directories that a layer implies root's, which they would
// be if root unpacked it. Nothing that a layer describes has our own id.
func (u *unpacking) giveToRoot(dir string) error {
	for ; u.own != 0 && dir != u.Dir && !u.owned[dir]; dir = filepath.Dir(dir) {
		var st unix.Stat_t
		if err := unix.Lstat(dir, &st); err != nil {
			return &os.PathError{Op: "lstat", Path: dir, Err: err}
		}
		if int(st.Uid) == u.own {
			if err := os.Lchown(dir, 0, 0); err != nil {
				return err
			}
		}
		u.owned[dir] = true
	}
	return nil
}

// isWhiteout knows overlay's whiteouts: character devices 0/0.
func isWhiteout(name string) bool {
	var st unix.Stat_t
	return unix.Lstat(name, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0
}

// boundedReader ends a stream that decompresses without end. A tar may be
// larger than the files in it, but not without limit.
type boundedReader struct {
	r         io.Reader
	left, max int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, TooBig(b.max)
	}
	return n, err
}
