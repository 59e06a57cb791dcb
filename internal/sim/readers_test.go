package sim

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/sched"
)

const swfLine = "7 100 -1 60 4 -1 -1 8 120 -1 1 3 -1 -1 -1 -1 -1 -1"

func TestReadSWF(t *testing.T) {
	w, err := readSWF(strings.NewReader("; MaxProcs: 16\n; UnixStartTime: 1000000\n\n" + swfLine + `
8 90 -1 30.4 4 -1 -1 -1 10 -1 1 3 -1 -1 -1 -1 -1 -1
9 95 -1 -1 4 -1 -1 4 10 -1 1 3 -1 -1 -1 -1 -1 -1
10 95 -1 5 99 -1 -1 99 10 -1 1 3 -1 -1 -1 -1 -1 -1
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Job{
		{Name: "8", User: "u3", Project: "trace", Submit: 90_000, Run: 30_000, Limit: 30_000, Shape: &sched.Shape{MilliCPU: 4000}},
		{Name: "7", User: "u3", Project: "trace", Submit: 100_000, Run: 60_000, Limit: 120_000, Shape: &sched.Shape{MilliCPU: 8000}},
	}
	if diff := cmp.Diff(want, w.Jobs); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	if w.Procs != 16 || w.Epoch != 1_000_000 || len(w.Notes) != 3 {
		t.Errorf("got %d processors, begin %d, notes %q: want 16, 1000000 and three notes", w.Procs, w.Epoch, w.Notes)
	}
}

func TestBadTraces(t *testing.T) {
	swf := func(text string) error { _, err := readSWF(strings.NewReader(text)); return err }
	philly := func(text string) error {
		_, err := readPhilly(strings.NewReader(text), phillySpan, 8)
		return err
	}
	pods := func(text string) error { _, err := readOpenbPods(strings.NewReader(text)); return err }
	nodes := func(text string) error { _, err := readOpenbNodes(strings.NewReader(text)); return err }
	for _, tc := range []struct {
		name, text, want string
		read             func(string) error
	}{
		{"swf/fields", swfLine + "\n1 2 3\n", "line 2: has 3 fields: the format has 18", swf},
		{"swf/word", strings.Replace(swfLine, "60", "long", 1), `line 1: field 4 is "long": want a number`, swf},
		{"swf/nan", strings.Replace(swfLine, "60", "NaN", 1), `line 1: field 4 is "NaN": want a number`, swf},
		{"swf/huge", strings.Replace(swfLine, "60", "9e30", 1), `line 1: field 4 is "9e30": too large`, swf},
		{"swf/procs", "; MaxProcs: many\n", `line 1: MaxProcs is "many": want a number of processors`, swf},
		{"philly/column", "timestamp,duration,num_gpus,colour\n", `line 1: unknown column "colour"`, philly},
		{"philly/twice", "timestamp,duration,duration\n", `line 1: column "duration" is there twice`, philly},
		{"philly/time", "timestamp,duration,num_gpus\nyesterday,1,1\n", `line 2: timestamp is "yesterday"`, philly},
		{"philly/duration", "timestamp,duration,num_gpus\n2017-10-02 00:00:00,-1,1\n", `line 2: duration is "-1"`, philly},
		{"philly/fields", "timestamp,duration,num_gpus\n2017-10-02 00:00:00,1\n", "line 2: wrong number of fields", philly},
		{"pods/empty", "", "line 1: the file is empty", pods},
		{"pods/missing", "name,cpu_milli,memory_mib,num_gpu\n", `line 1: column "gpu_milli" is missing`, pods},
		{"pods/share", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,2,500\n", "line 2: 2 GPUs of 500/1000 each", pods},
		{"pods/negative", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,-1,1,1,500\n", `line 2: cpu_milli is "-1"`, pods},
		{"nodes/cores", "sn,cpu_milli,memory_mib,gpu,model\nn,1500,1,1,T4\n", "line 2: 1500 milli CPU", nodes},
		{"nodes/quote", "sn,cpu_milli,memory_mib,gpu,model\n\"n,1000,1,1,T4\n", "line 2:", nodes},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.read(tc.text)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// TestTruncatedGzip proves that a log that was cut off is not taken for a
// shorter one.
func TestTruncatedGzip(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for range 5000 {
		_, _ = z.Write([]byte(swfLine + "\n"))
	}
	z.Close()
	cut := bytes.NewReader(b.Bytes()[:b.Len()/2])
	r, err := gzip.NewReader(cut)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readSWF(r); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "line ") {
		t.Errorf("got error %v, want an unexpected end with its line", err)
	}
}

// FuzzReaders proves that no log makes a reader panic, and that what is read can
// be replayed.
func FuzzReaders(f *testing.F) {
	f.Add("; MaxProcs: 16\n" + swfLine)
	f.Add("timestamp,duration,num_gpus,cluster\n2017-10-02 00:00:00,10,12,a\n")
	f.Add("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np,1000,10,1,500,V100|T4\n")
	f.Add("sn,cpu_milli,memory_mib,gpu,model\nn,1000,10,1,T4\n")
	f.Add("job_id,submit_time,duration,gpu_num\n1,0,5,9\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4000 {
			return
		}
		_, _ = readOpenbNodes(strings.NewReader(text))
		nodes := gpuNodes(2, 8, "T4")
		for _, format := range []string{"swf", "philly", "openb"} {
			src := Source{Format: format, Trace: strings.NewReader(text), Load: 0.01, Seed: 1}
			if format != "swf" {
				src.Nodes, src.PerNode = 2, 8
			} else {
				src.Procs = 16
				nodes = pool(16)
			}
			w, _, err := src.Read()
			if err != nil || len(w.Jobs) == 0 || len(w.Jobs) > 100 {
				continue
			}
			if _, _, err := (Options{Policy: "easy", Estimates: "user", Placement: "bestfit"}).Replay(w, nodes, Watch{}); err != nil && strings.Contains(err.Error(), "cannot be") {
				t.Errorf("%s: %v", format, err)
			}
		}
	})
}
