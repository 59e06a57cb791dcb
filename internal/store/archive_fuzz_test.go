package store

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// FuzzUnpack unpacks anything as the store of another controller: nothing is written
// beside its directory, nothing but plain files into it, and no more than was sent.
func FuzzUnpack(f *testing.F) {
	archive := func(headers ...*tar.Header) []byte {
		var b bytes.Buffer
		t := tar.NewWriter(&b)
		for _, h := range headers {
			if err := t.WriteHeader(h); err != nil {
				f.Fatal(err)
			}
			if _, err := t.Write(make([]byte, h.Size)); err != nil {
				f.Fatal(err)
			}
		}
		return b.Bytes() // not closed: it is padded below
	}
	f.Add(archive(&tar.Header{Name: "CURRENT", Mode: 0o600, Size: 3}))
	f.Add(archive(&tar.Header{Name: "../up", Mode: 0o600, Size: 3}))
	f.Add(archive(&tar.Header{Name: "..", Mode: 0o600}))
	f.Add(archive(&tar.Header{Name: "/abs", Mode: 0o600, Size: 1}, &tar.Header{Name: ".", Size: 1}))
	f.Add(archive(&tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: ".."}, &tar.Header{Name: "l", Size: 1}))
	f.Add(holes("1", "GNU.sparse.major=1"))
	f.Add(holes("0", "GNU.sparse.numblocks=0"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		around := t.TempDir()
		dir := filepath.Join(around, "store")
		_ = Config{Dir: dir}.Unpack(bytes.NewReader(append(sent, make([]byte, 1024)...))) // refused or not
		for at, most := range map[string]int{around: 1, dir: len(sent)/512 + 1} {
			list, err := os.ReadDir(at)
			if err != nil || len(list) > most {
				t.Fatalf("%s has %d files: %v", at, len(list), err)
			}
		}
		if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
			t.Fatalf("others may enter the directory: %v %v", st, err)
		}
		size := int64(0)
		files, _ := os.ReadDir(dir)
		for _, e := range files {
			st, err := e.Info()
			if err != nil || !st.Mode().IsRegular() {
				t.Fatalf("%s is %v: %v", e.Name(), st.Mode(), err)
			}
			size += st.Size()
		}
		if size > int64(len(sent)+1024) {
			t.Errorf("%d bytes became %d", len(sent), size)
		}
	})
}

// holes is an archive of a file that says it is a GiB, nearly nothing of which is sent.
func holes(version, more string) []byte {
	var records bytes.Buffer
	for _, r := range []string{more, "GNU.sparse.minor=0", "GNU.sparse.name=x", "GNU.sparse.realsize=1073741824", "GNU.sparse.size=1073741824", "GNU.sparse.map=", "GNU.sparse.version=" + version} {
		n := len(r) + 4 // a blank, a line's end, and the length itself
		records.WriteString(fmt.Sprintf("%d %s\n", n, r))
	}
	body := []byte("0\n")
	var b bytes.Buffer
	for _, part := range []struct {
		kind byte
		data []byte
	}{{tar.TypeXHeader, records.Bytes()}, {tar.TypeReg, append(body, make([]byte, 510)...)}} {
		h := make([]byte, 512)
		copy(h, "x")
		copy(h[100:], "0000600\x000000000\x000000000\x00")
		copy(h[124:], fmt.Sprintf("%011o\x00%011o\x00        ", len(part.data), 0))
		h[156] = part.kind
		copy(h[257:], "ustar\x0000")
		sum := 0
		for _, c := range h {
			sum += int(c)
		}
		copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
		b.Write(h)
		b.Write(part.data)
		b.Write(make([]byte, (512-len(part.data)%512)%512))
	}
	return b.Bytes()
}
