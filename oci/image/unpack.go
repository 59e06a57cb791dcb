package image

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
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
	opaqueXattr    = "trusted.overlay.opaque"
)

// unpacked describes a layer directory; it is the content of layer.json.
type unpacked struct {
	DiffID  v1.Hash `json:"diffID"`
	Size    int64   `json:"size"` // bytes of its files
	Entries int     `json:"entries"`
	// Implicit are directories that files of the layer lie in, but that the
	// layer does not describe; see dirs.go. Sorted.
	Implicit []string `json:"implicit,omitempty"`
	// Boot is the boot in which it was written. What no image refers to and
	// was written before a crash of the machine may not be on disk in full.
	Boot string `json:"boot"`
}

// target is where a layer goes and what it must be.
type target struct {
	dir      string // exists and is empty
	diffID   v1.Hash
	maxBytes int64 // of its files
}

// unpack writes the layer read from r and verifies it. r is read to its end,
// so that its own verification happens too.
func unpack(ctx context.Context, r io.Reader, to target) (unpacked, error) {
	plain, done, err := decompress(r)
	if err != nil {
		return unpacked{}, unpackError(err)
	}
	defer done()
	u := &unpacking{max: to.maxBytes, explicit: map[string]bool{}, used: map[string]bool{}}
	hash := sha256.New()
	stream := io.TeeReader(&boundedReader{r: plain, left: 2*to.maxBytes + 1<<20, max: to.maxBytes}, hash)
	_, err = archive.Apply(log.WithLogger(ctx, silent), to.dir, stream, archive.WithFilter(u.accept), archive.WithConvertWhiteout(convertWhiteout))
	if err == nil {
		_, err = io.Copy(io.Discard, stream)
	}
	if err == nil {
		_, err = io.Copy(io.Discard, r)
	}
	if err != nil {
		return unpacked{}, unpackError(err)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != to.diffID.Hex {
		return unpacked{}, fail(Corrupt, "unpacked it has digest sha256:%s, not %s", got, to.diffID)
	}
	return unpacked{DiffID: to.diffID, Size: u.bytes, Entries: u.entries, Implicit: u.implicit()}, nil
}

// silent keeps the library's remarks on odd entries out of the node's log:
// strangers could fill it.
var silent = logrus.NewEntry(&logrus.Logger{Out: io.Discard, Level: logrus.PanicLevel})

// unpackError tells errors of the layer from those of the disk.
func unpackError(err error) error {
	var pe *PullError
	var errno unix.Errno
	switch {
	case errors.As(err, &pe):
		return pe
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case isDiskFull(err):
		return wrap(DiskFull, err, "the node's image store is full")
	case errors.As(err, &errno) && (errno == unix.EIO || errno == unix.EROFS || errno == unix.EPERM || errno == unix.EMFILE || errno == unix.ENFILE || errno == unix.ENOMEM):
		return wrap(Internal, err, "it cannot be unpacked on this node: %v", errno)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return wrap(Corrupt, err, "it ends too early")
	}
	return wrap(Corrupt, err, "%s", plainReason(err))
}

// plainReason leaves paths of the store out of a message.
func plainReason(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		return fmt.Sprintf("an entry %q cannot be made: %v", filepath.Base(p.Path), p.Err)
	}
	var l *os.LinkError
	if errors.As(err, &l) {
		return fmt.Sprintf("a link %q cannot be made: %v", filepath.Base(l.New), l.Err)
	}
	return err.Error()
}

// unpacking watches the entries of one layer.
type unpacking struct {
	max      int64
	bytes    int64
	entries  int
	explicit map[string]bool // directories that have an entry
	used     map[string]bool // directories that entries lie in
}

// accept is called for each entry before anything is made of it. It may
// change the header.
func (u *unpacking) accept(h *tar.Header) (bool, error) {
	u.entries++
	if u.entries > maxEntries {
		return false, fail(Unsupported, "it has more than %d entries", maxEntries)
	}
	// The header counts, not what was read: holes take no bytes in the tar.
	if u.bytes += h.Size; u.bytes > u.max || u.bytes < 0 {
		return false, tooBig(u.max)
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

// keepXattr drops what would steer the kernel: overlay's redirects, labels of
// this host's security modules, integrity signatures.
func keepXattr(name string) bool {
	return strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "user.overlay.") ||
		name == "security.capability" || strings.HasPrefix(name, "system.posix_acl_")
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

// convertWhiteout writes whiteouts in overlay's form. A whiteout hides what is
// in lower layers, never what the same layer holds, in whatever order the two
// come; a directory that replaces one is opaque.
func convertWhiteout(h *tar.Header, name string) (bool, error) {
	base := filepath.Base(name)
	if hidden, ok := strings.CutPrefix(base, whiteoutPrefix); ok && base != opaqueMarker {
		own := filepath.Join(filepath.Dir(name), hidden)
		if info, err := os.Lstat(own); err == nil {
			if info.IsDir() {
				return false, unix.Lsetxattr(own, opaqueXattr, []byte{'y'}, 0)
			}
			return false, nil
		}
	} else if h.Typeflag == tar.TypeDir && isWhiteout(name) {
		if err := os.Remove(name); err != nil {
			return false, err
		}
		if err := os.Mkdir(name, 0o700); err != nil {
			return false, err
		}
		return true, unix.Lsetxattr(name, opaqueXattr, []byte{'y'}, 0)
	}
	return archive.OverlayConvertWhiteout(h, name)
}

// isWhiteout knows overlay's whiteouts: character devices 0/0.
func isWhiteout(name string) bool {
	var st unix.Stat_t
	return unix.Lstat(name, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0
}

func tooBig(limit int64) error {
	return fail(Unsupported, "it unpacks to more than the %d MiB that this node allows for an image", limit>>20)
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
		return 0, tooBig(b.max)
	}
	return n, err
}
