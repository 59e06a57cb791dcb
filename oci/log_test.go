package oci_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gbatch/oci"
	"gbatch/oci/logs"
)

func logSize(t *testing.T, dir string) (total int64) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "log", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if st, err := os.Stat(f); err == nil {
			total += st.Size()
		}
	}
	return total
}

func TestLogQuota(t *testing.T) {
	b := newBox(t, "echo first; seq 1 100000; echo last")
	b.cfg.Log.MaxBytes = 64 << 10
	exit, log := b.run()
	if want := int64(len("first\nlast\n") + 588895); exit.LogBytes != want {
		t.Errorf("%d bytes written, want %d", exit.LogBytes, want)
	}
	if size := logSize(t, b.dir); size > 64<<10 || size < 40<<10 {
		t.Errorf("log has %d bytes", size)
	}
	if !strings.HasPrefix(log, "first\n1\n2\n") || !strings.HasSuffix(log, "99999\n100000\nlast\n") {
		t.Errorf("beginning or end is missing: %.40q ... %q", log, log[len(log)-40:])
	}
	if strings.Count(log, "[gbatch: ") != 1 {
		t.Error("want one notice of dropped output")
	}
}

// Offsets stay the same across rotation, whatever is dropped.
func TestLogOffsets(t *testing.T) {
	b := newBox(t, "seq -w 1 9999")
	b.cfg.Log.MaxBytes = logs.MinBytes
	b.run()
	var whole bytes.Buffer
	for i := 1; i <= 9999; i++ {
		fmt.Fprintf(&whole, "%04d\n", i)
	}
	l, err := oci.OpenLog(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if end, err := l.End(); err != nil || end != int64(whole.Len()) {
		t.Errorf("end %d, %v; want %d", end, err, whole.Len())
	}
	for _, off := range []int64{0, 1, 4095, 4096, 5000, 30000, 49990, 49994, -7} {
		c, err := l.ReadAt(off)
		if err != nil {
			t.Fatalf("read at %d: %v", off, err)
		}
		end := c.Offset + int64(len(c.Data))
		if !bytes.Equal(c.Data, whole.Bytes()[c.Offset:end]) {
			t.Errorf("read at %d: wrong bytes at %d", off, c.Offset)
		}
		if off >= 0 && c.Offset-c.Dropped != off {
			t.Errorf("read at %d: chunk at %d after %d dropped", off, c.Offset, c.Dropped)
		}
	}
	if _, err := l.ReadAt(int64(whole.Len())); !errors.Is(err, io.EOF) {
		t.Errorf("read at the end: %v", err)
	}
}

func TestLogFollow(t *testing.T) {
	b := newBox(t, `for i in 1 2 3 4 5; do echo line $i; sleep 0.02; done; printf '\0\377binary'`)
	b.start()
	l, err := oci.OpenLog(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var out bytes.Buffer
	for off := int64(0); ; {
		c, err := l.Next(t.Context(), off)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		out.Write(c.Data)
		off = c.Offset + int64(len(c.Data))
	}
	if want := "line 1\nline 2\nline 3\nline 4\nline 5\n\x00\xffbinary"; out.String() != want {
		t.Errorf("followed %q", out.String())
	}
	b.exit()
}

func TestLogFollowStops(t *testing.T) {
	b := newBox(t, "sleep 1000")
	b.start()
	l, err := oci.OpenLog(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Next(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("next: %v", err)
	}
}
