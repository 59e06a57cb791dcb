package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"gbatch/oci/image/unpack"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"
)

type hostileLayer struct {
	entries []entry
	raw     []byte // instead of entries
	refused string // part of the sentence; empty: it must be unpacked
	has     string // a path that must exist then
	hasNot  string
}

// In names and links, SENTINEL is the path of a file outside of the store and
// OUTSIDE that of its directory.
var hostileLayers = sync.OnceValue(func() map[string]hostileLayer {
	return map[string]hostileLayer{
		"dotdot":                  {entries: []entry{file("../../sentinel", "bad")}, has: "sentinel"},
		"dotdot_inside":           {entries: []entry{defaultDir("a"), file("a/../../../sentinel", "bad")}, has: "sentinel"},
		"absolute":                {entries: []entry{file("/etc/shadow", "bad")}, has: "etc/shadow"},
		"absolute_sentinel":       {entries: []entry{file("SENTINEL", "bad")}},
		"symlink_then_write":      {entries: []entry{link(tar.TypeSymlink, "out", "../.."), file("out/sentinel", "bad")}, has: "sentinel"},
		"absolute_symlink_write":  {entries: []entry{link(tar.TypeSymlink, "out", "OUTSIDE"), file("out/sentinel", "bad")}},
		"symlink_chain":           {entries: []entry{link(tar.TypeSymlink, "a", ".."), link(tar.TypeSymlink, "b", "a/.."), file("b/sentinel", "bad")}},
		"symlink_to_root":         {entries: []entry{link(tar.TypeSymlink, "r", "/"), file("r/etc/x", "ok")}, has: "etc/x"},
		"symlink_loop":            {entries: []entry{link(tar.TypeSymlink, "a", "b"), link(tar.TypeSymlink, "b", "a"), file("a/x", "")}, refused: "too many links"},
		"symlink_overwrite":       {entries: []entry{link(tar.TypeSymlink, "s", "../../sentinel"), file("s", "bad")}, has: "s"},
		"symlink_replaced_by_dir": {entries: []entry{link(tar.TypeSymlink, "s", "../.."), defaultDir("s"), file("s/sentinel", "x")}, has: "s/sentinel"},
		"hardlink_escape":         {entries: []entry{link(tar.TypeLink, "h", "../../sentinel"), file("h", "bad")}, refused: "no such file"},
		"hardlink_absolute":       {entries: []entry{link(tar.TypeLink, "h", "SENTINEL")}, refused: "no such file"},
		"hardlink_by_symlink":     {entries: []entry{link(tar.TypeSymlink, "s", "../.."), link(tar.TypeLink, "h", "s/sentinel"), file("h", "bad")}, refused: "no such file"},
		"hardlink_to_symlink":     {entries: []entry{link(tar.TypeSymlink, "s", "OUTSIDE/sentinel"), link(tar.TypeLink, "h", "s"), file("h", "bad")}, has: "s"},
		"whiteout_parent":         {entries: []entry{file(".wh...", "")}, refused: "invalid whiteout name"},
		"whiteout_self":           {entries: []entry{file(".wh..", "")}, refused: "invalid whiteout name"},
		"whiteout_parent_in_dir":  {entries: []entry{defaultDir("d"), file("d/.wh...", "")}, refused: "invalid whiteout name"},
		"whiteout_nothing":        {entries: []entry{file(".wh.", "")}, refused: "invalid whiteout name"},
		"whiteout_by_symlink":     {entries: []entry{link(tar.TypeSymlink, "s", "../.."), file("s/.wh.sentinel", "")}},
		"opaque_by_symlink":       {entries: []entry{link(tar.TypeSymlink, "s", "OUTSIDE"), file("s/.wh..wh..opq", "")}},
		"aufs_bookkeeping":        {entries: []entry{defaultDir(".wh..wh.plnk"), file(".wh..wh.plnk/1", ""), file(".wh..wh.aufs", ""), file("x", "")}, has: "x", hasNot: ".wh.aufs"},
		"block_device":            {entries: []entry{{h: tar.Header{Typeflag: tar.TypeBlock, Name: "sda", Devmajor: 8, Mode: 0o666}}}, hasNot: "sda"},
		"char_device":             {entries: []entry{{h: tar.Header{Typeflag: tar.TypeChar, Name: "mem", Devmajor: 1, Devminor: 1, Mode: 0o666}}}, hasNot: "mem"},
		"fifo":                    {entries: []entry{{h: tar.Header{Typeflag: tar.TypeFifo, Name: "pipe", Mode: 0o644}}}, has: "pipe"},
		"write_to_fifo":           {entries: []entry{{h: tar.Header{Typeflag: tar.TypeFifo, Name: "pipe", Mode: 0o644}}, file("pipe", "x")}, has: "pipe"},
		"huge_hole":               {raw: sparseTar(1 << 40), refused: "unpacks to more than the 1 MiB"},
		"too_big":                 {entries: []entry{file("big", strings.Repeat("x", 1<<20+1))}, refused: "unpacks to more than the 1 MiB"},
		"bomb_after_end":          {raw: append(tarOf([]entry{file("x", "")}), make([]byte, 8<<20)...), refused: "unpacks to more than the 1 MiB"},
		"gzip_bomb":               {raw: gzipOf(make([]byte, 64<<20)), refused: "unpacks to more than the 1 MiB"},
		"duplicate_files":         {entries: []entry{file("x", "1"), file("x", "2")}, has: "x"},
		"file_becomes_dir":        {entries: []entry{file("x", "1"), defaultDir("x"), file("x/y", "2")}, has: "x/y"},
		"dir_becomes_file":        {entries: []entry{defaultDir("x"), file("x/y", "2"), file("x", "1")}, has: "x"},
		"below_a_file":            {entries: []entry{file("x", "1"), file("x/y", "2")}, refused: "not a directory"},
		"root_as_file":            {entries: []entry{file("/", ""), file(".", "y")}},
		"root_as_symlink":         {entries: []entry{link(tar.TypeSymlink, "./", "../.."), file("sentinel", "x")}, has: "sentinel"},
		"long_name":               {entries: []entry{file(strings.Repeat("n", 300), "x")}, refused: "file name too long"},
		"deep_name":               {entries: []entry{file(strings.Repeat("d/", 3000)+"x", "x")}, refused: "too long"},
		"newline_in_name":         {entries: []entry{file("a\nb", "x")}, has: "a\nb"},
		"overlay_redirect":        {entries: []entry{pax(defaultDir("d"), "SCHILY.xattr.trusted.overlay.redirect", "/etc")}, has: "d"},
		"selinux_label":           {entries: []entry{pax(file("f", ""), "SCHILY.xattr.security.selinux", "x")}, has: "f"},
		"xattr_on_symlink":        {entries: []entry{pax(link(tar.TypeSymlink, "s", "SENTINEL"), "SCHILY.xattr.user.x", "y")}},
		"capability":              {entries: []entry{pax(file("f", ""), "SCHILY.xattr.security.capability", "\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")}, has: "f"},
		"unknown_type":            {entries: []entry{{h: tar.Header{Typeflag: 'Z', Name: "z", Mode: 0o644}}}, refused: "unhandled tar header type"},
		"negative_size":           {raw: negativeSize(), refused: "invalid tar header"},
		"truncated":               {raw: tarOf([]entry{file("x", strings.Repeat("x", 4096))})[:1024], refused: "ends too early"},
		"truncated_gzip":          {raw: gzipOf(tarOf([]entry{file("x", "y")}))[:60], refused: "ends too early"},
		"bad_gzip":                {raw: append([]byte{0x1f, 0x8b, 8, 0}, make([]byte, 100)...), refused: "corrupt input"},
		"not_a_tar":               {raw: bytes.Repeat([]byte("no tar at all. "), 100), refused: "invalid tar header"},
		"empty":                   {raw: []byte{}},
	}
})

func defaultDir(name string) entry { return directory(name, 0o755, 0) }

func link(kind byte, name, to string) entry {
	return entry{h: tar.Header{Typeflag: kind, Name: name, Linkname: to, Mode: 0o777}}
}

func pax(e entry, key, value string) entry {
	e.h.PAXRecords = map[string]string{key: value}
	return e
}

// Layers come from strangers. Each of these is unpacked within its directory
// or refused with a sentence, and nothing outside of it changes.
func TestHostileLayers(t *testing.T) {
	needRoot(t)
	for name, tc := range hostileLayers() {
		t.Run(name, func(t *testing.T) {
			outside := t.TempDir()
			root := filepath.Join(outside, "store", "fs")
			if err := os.MkdirAll(root, 0o755); err != nil {
				t.Fatal(err)
			}
			sentinel := filepath.Join(outside, "sentinel")
			write(t, outside, "sentinel", "untouched")
			entries := slices.Clone(tc.entries)
			for i := range entries {
				for _, s := range []*string{&entries[i].h.Name, &entries[i].h.Linkname} {
					*s = strings.ReplaceAll(strings.ReplaceAll(*s, "SENTINEL", sentinel), "OUTSIDE", outside)
				}
			}
			raw := tc.raw
			if raw == nil {
				raw = tarOf(entries)
			}
			before := snapshot(t, outside, root)
			err := unpackAll(t, root, raw)
			if diff := before.changes(snapshot(t, outside, root)); diff != "" {
				t.Errorf("changed outside of the layer: %s", diff)
			}
			checkOutcome(t, root, err, tc.refused)
			if err != nil {
				return
			}
			if _, err := os.Lstat(filepath.Join(root, tc.has)); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(filepath.Join(root, tc.hasNot)); tc.hasNot != "" && err == nil {
				t.Errorf("%s exists", tc.hasNot)
			}
			checkNoDevices(t, root)
		})
	}
}

func checkOutcome(t *testing.T, root string, err error, refused string) {
	t.Helper()
	if err == nil {
		if refused != "" {
			t.Errorf("was unpacked; want it refused: %s", refused)
		}
		return
	}
	var e *PullError
	if !errors.As(err, &e) || refused == "" || !strings.Contains(e.Detail, refused) {
		t.Fatalf("refused with %q; want %q", err, refused)
	}
	if e.Kind != Corrupt && e.Kind != Unsupported || strings.Contains(e.Detail, root) || strings.Contains(e.Detail, "\n") {
		t.Errorf("kind %s, sentence %q", e.Kind, e.Detail)
	}
}

type entry struct {
	h    tar.Header
	body string
}

// tarOf panics on what no tar can hold.
func tarOf(entries []entry) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		e.h.Size = int64(len(e.body))
		if err := w.WriteHeader(&e.h); err != nil {
			panic(err)
		}
		if _, err := w.Write([]byte(e.body)); err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

func gzipOf(raw []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(raw)
	w.Close()
	return out.Bytes()
}

// sparseTar is a file of that size which is all hole, in the format of GNU
// tar's --sparse --format=pax. It takes 3 KiB.
func sparseTar(size int64) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	w.WriteHeader(&tar.Header{Name: "placeholder", Mode: 0o644, Size: 512, PAXRecords: map[string]string{"comment": "x"}})
	w.Write(make([]byte, 512))
	w.Close()
	raw := out.Bytes()
	// The writer takes no sparse records, so they are put in place of its own.
	record := func(key, value string) string {
		for n := len(key) + len(value) + 4; ; n++ {
			s := strconv.Itoa(n) + " " + key + "=" + value + "\n"
			if len(s) == n {
				return s
			}
		}
	}
	records := record("GNU.sparse.major", "1") + record("GNU.sparse.minor", "0") + record("GNU.sparse.name", "hole") + record("GNU.sparse.realsize", strconv.FormatInt(size, 10))
	copy(raw[124:136], fmt.Sprintf("%011o\x00", len(records)))
	fixChecksum(raw[:512])
	clear(raw[512:1024])
	copy(raw[512:], records)
	copy(raw[1536:], "1\n"+strconv.FormatInt(size, 10)+"\n0\n")
	return raw
}

func negativeSize() []byte {
	raw := tarOf([]entry{{h: tar.Header{Name: "x", Mode: 0o644}}})
	copy(raw[124:136], "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00") // base 256, -256
	fixChecksum(raw[:512])
	return raw
}

func fixChecksum(h []byte) {
	copy(h[148:156], "        ")
	sum := 0
	for _, b := range h {
		sum += int(b)
	}
	copy(h[148:156], fmt.Sprintf("%06o\x00 ", sum))
}

// unpackAll unpacks raw as what it is: its digest, if any, is right.
func unpackAll(t *testing.T, root string, raw []byte) error {
	t.Helper()
	plain := raw
	if len(raw) > 2 && raw[0] == 0x1f {
		if z, err := gzip.NewReader(bytes.NewReader(raw)); err == nil {
			var out bytes.Buffer
			out.ReadFrom(z)
			plain = out.Bytes()
		}
	}
	sum := sha256.Sum256(plain)
	_, err := unpack.Layer(t.Context(), bytes.NewReader(raw), unpack.Target{
		Dir: root, DiffID: v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])}, MaxBytes: 1 << 20, MaxID: ownID - 1, Room: func(int64) error { return nil },
	})
	return classifyUnpack(err)
}

// isWhiteout knows overlay's whiteouts.
func isWhiteout(name string) bool {
	var st unix.Stat_t
	return unix.Lstat(name, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0
}

func checkNoDevices(t *testing.T, root string) {
	t.Helper()
	filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type()&fs.ModeDevice != 0 && !isWhiteout(name) {
			t.Errorf("%s is a device", name)
		}
		for _, attr := range []string{"trusted.overlay.redirect", "trusted.overlay.metacopy", "security.selinux"} {
			if n, err := unix.Lgetxattr(name, attr, nil); err == nil {
				t.Errorf("%s has %s of %d bytes", name, attr, n)
			}
		}
		return nil
	})
}

// outsideState is everything below a directory but what is below skip.
type outsideState map[string]string

func snapshot(t *testing.T, dir, skip string) outsideState {
	t.Helper()
	state := outsideState{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name == skip {
			return filepath.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		state[name] = info.Mode().String()
		if info.Mode().IsRegular() {
			body, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			state[name] += string(body) + info.ModTime().String()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func (before outsideState) changes(after outsideState) string {
	for name, was := range before {
		if after[name] != was {
			return name
		}
		delete(after, name)
	}
	for name := range after {
		return "new: " + name
	}
	return ""
}
