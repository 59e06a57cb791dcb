package sim

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// traceDirs is where the published logs are looked for. They are not ours to
// keep here; docs/simulator.md says where they come from.
func traceFile(tb testing.TB, name string) io.Reader {
	tb.Helper()
	dir := os.Getenv("GBATCH_TRACES")
	if dir == "" {
		tb.Skip("GBATCH_TRACES does not name a directory with the published logs: figures are not compared")
	}
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		tb.Skipf("a published log is absent: %v", err)
	}
	tb.Cleanup(func() { f.Close() })
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	return z
}

func readTrace(tb testing.TB, log string) workload {
	tb.Helper()
	w, err := readSWF(traceFile(tb, log+".swf.gz"))
	if err != nil {
		tb.Fatal(err)
	}
	return w
}
