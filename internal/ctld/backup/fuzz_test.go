package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"testing"
)

// FuzzRead reads anything as a backup: no file that it would write is outside
// of the directory.
func FuzzRead(f *testing.F) {
	archive := func(names ...string) []byte {
		var b bytes.Buffer
		t := tar.NewWriter(&b)
		for i, name := range names {
			text := []byte("x")
			if i == 0 {
				text = fmt.Appendf(nil, `{"format":%d}`, backupFormat)
			}
			_ = t.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text))})
			_, _ = t.Write(text)
		}
		_ = t.Close()
		return b.Bytes()
	}
	f.Add(archive(manifestFile, "secrets.key", "store/000001.log"))
	f.Add(archive(manifestFile, "store/../../etc/passwd"))
	f.Add(archive(manifestFile, "/etc/passwd"))
	f.Add(archive("x"))
	z, err := gzip.NewWriterLevel(nil, gzip.NoCompression) // a new one for each would take most of the time
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var b bytes.Buffer
		z.Reset(&b) // or nearly everything would be no gzip
		_, _ = z.Write(raw)
		_ = z.Close()
		_, _ = Read(&b, func(name string, _ fs.FileMode, r io.Reader) error {
			if !filepath.IsLocal(name) || filepath.Clean(name) != name && filepath.Dir(name) == "." {
				t.Errorf("it has the file %q", name)
			}
			_, err := io.Copy(io.Discard, r)
			return err
		})
	})
}
