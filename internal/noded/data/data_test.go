package data

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gbatch/internal/noded/config"
	"gbatch/oci/atomicfile"
)

// TestBoot: what came for ranks stays over a restart, with a note of an earlier version too, and goes with the next boot. Whichever
// byte of the note the disk changes, or when it is gone, the files stay for those that may use them, and nothing that is
// still to start goes on with what is there.
func TestBoot(t *testing.T) {
	const boot, other = "6f8a7c52-7d1f-4b0e-9d3a-2f1c5a3e8b90", "0b1de1aa-50cc-4f0c-8d65-3a2b9f6b7c11"
	whole := atomicfile.Sum([]byte(boot))
	type want struct{ file, manifest, said bool }
	type start struct {
		mark []byte
		want want
	}
	cases := map[string]start{
		"the same boot":                  {whole, want{true, true, false}},
		"one of an earlier version":      {[]byte(boot), want{true, true, false}},
		"another boot":                   {atomicfile.Sum([]byte(other)), want{}},
		"another, of an earlier version": {[]byte(other), want{}},
		"none":                           {nil, want{true, false, false}},
		"an empty one":                   {[]byte{}, want{true, false, true}},
	}
	for at := range whole {
		damaged := bytes.Clone(whole)
		damaged[at] ^= 4
		cases[fmt.Sprint("damaged at ", at)] = start{damaged, want{true, false, true}}
	}
	for name, tc := range cases {
		c := &config.Config{Data: config.Data{Dir: t.TempDir()}}
		dir := filepath.Join(c.Data.Dir, "ranks", "1.0.0", "0")
		file, manifest, mark := filepath.Join(dir, "content", "file"), filepath.Join(dir, "manifest.json"), filepath.Join(c.Data.Dir, "boot")
		for _, path := range []string{file, manifest, mark} {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			text := tc.mark
			if path != mark {
				text = []byte("[]")
			} else if text == nil {
				continue
			}
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var log bytes.Buffer
		if _, err := Open(c, boot, slog.New(slog.NewTextHandler(&log, nil)), nil); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		is := func(path string) bool { _, err := os.Stat(path); return err == nil }
		if got := (want{is(file), is(manifest), strings.Contains(log.String(), "damaged")}); got != tc.want {
			t.Errorf("%s: the file is there, it is gone on with, it is said: %v, want %v", name, got, tc.want)
		}
		if last, err := atomicfile.Read(mark); string(last) != boot || err != nil {
			t.Errorf("%s: then the note is %q, %v", name, last, err)
		}
	}
}
