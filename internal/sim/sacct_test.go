package sim

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// readExport reads an export and says its jobs in one line each, and its nodes.
func readExport(t *testing.T, text string, s Source) (jobs, nodes, notes []string, err error) {
	t.Helper()
	s.Format, s.Trace = "sacct", strings.NewReader(text)
	w, machine, err := s.Read()
	for _, j := range w.Jobs {
		jobs = append(jobs, fmt.Sprintf("%s %s/%s %s at %d waited %d ran %d of %d: %d x %d mGPU %d mCPU %d MiB %v %v", j.Name, j.User, j.Project, j.Partition,
			j.Submit/1000, j.Waited/1000, j.Run/1000, j.Limit/1000, j.Shape.Ranks(), j.Shape.MilliGPU, j.Shape.MilliCPU, j.Shape.MemMiB, j.Shape.GPUModels, j.Shape.Features))
	}
	for _, n := range machine {
		line := fmt.Sprintf("%s %d cores %d MiB %v", n.Name, n.Inventory.CPUs, n.Inventory.MemBytes>>20, n.Inventory.Features)
		for _, g := range n.Inventory.GPUs {
			line += " " + g.Model
		}
		nodes = append(nodes, line)
	}
	return jobs, nodes, w.Notes, err
}

// TestReadSacct reads what Slurm 22.05 printed of a small cluster.
func TestReadSacct(t *testing.T) {
	text, err := os.ReadFile("testdata/sacct.txt")
	if err != nil {
		t.Fatal(err)
	}
	jobs, nodes, notes, err := readExport(t, string(text), Source{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"1 daemon/physics gpu at 0 waited 0 ran 6 of 300: 1 x 2000 mGPU 1000 mCPU 4000 MiB [a100] [partition=gpu]",
		"3 games/vision cpu at 0 waited 0 ran 4 of 120: 1 x 0 mGPU 4000 mCPU 2000 MiB [] [partition=cpu]",
		"4 daemon/physics gpu at 0 waited 0 ran 3 of 300: 1 x 2000 mGPU 1000 mCPU 64000 MiB [] [partition=gpu]",
		"9 nobody/physics gpu at 19 waited 11 ran 2 of 180: 1 x 1000 mGPU 1000 mCPU 64000 MiB [] [partition=gpu]",
		"10 daemon/physics gpu at 19 waited 11 ran 3 of 300: 1 x 1000 mGPU 1000 mCPU 64000 MiB [] [partition=gpu]",
		"6 daemon/physics gpu at 20 waited 0 ran 1 of 3600: 1 x 0 mGPU 4000 mCPU 64000 MiB [] [partition=gpu]",
		"8_1 nobody/physics gpu at 20 waited 0 ran 3 of 180: 1 x 1000 mGPU 1000 mCPU 64000 MiB [] [partition=gpu]",
		"8_2 nobody/physics gpu at 20 waited 3 ran 3 of 180: 1 x 1000 mGPU 1000 mCPU 64000 MiB [] [partition=gpu]",
		"8_3 nobody/physics gpu at 26 waited 0 ran 3 of 180: 1 x 1000 mGPU 1000 mCPU 64000 MiB [] [partition=gpu]",
		"8_4 nobody/physics gpu at 26 waited 0 ran 3 of 180: 1 x 1000 mGPU 1000 mCPU 64000 MiB [] [partition=gpu]",
	}
	if diff := cmp.Diff(want, jobs); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"cpu1 4 cores 2000 MiB [partition=cpu]", "gpu01 4 cores 64000 MiB [partition=gpu] a100 a100", "gpu02 1 cores 64000 MiB [partition=gpu] a100 a100"}, nodes); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if len(notes) != 6 || !strings.HasPrefix(notes[0], "1 jobs left out: they never began") || !strings.HasPrefix(notes[1], "10 steps") {
		t.Errorf("notes %q", notes)
	}
}

// TestSacctColumns: other usual columns say the same, and what they do not say
// is noted.
func TestSacctColumns(t *testing.T) {
	text, err := os.ReadFile("testdata/sacct-short.txt")
	if err != nil {
		t.Fatal(err)
	}
	jobs, _, notes, err := readExport(t, string(text), Source{Nodes: 2, PerNode: 4})
	if err != nil || len(jobs) != 9 || jobs[8] != "8 nobody/trace  at 19 waited 7 ran 3 of 180: 1 x 0 mGPU 1000 mCPU 0 MiB [] []" {
		t.Errorf("%v, %d jobs, the last %q", err, len(jobs), jobs)
	}
	for _, want := range []string{"1 lines left out that have more fields than the header, the first is line 7", "no Eligible column", "no AllocTRES or ReqTRES column", "partitions and types of GPUs are not kept apart"} {
		if !strings.Contains(strings.Join(notes, "\n"), want) {
			t.Errorf("no note says %q: %q", want, notes)
		}
	}
	const epoch = "jobid|USER|submit|start|end|alloctres|nodelist|state\n7|ann|1700000000|1700003600|1700007200|cpu=9,node=2,gres/gpu=3,mem=1.5G|n[1-2]|COMPLETED\n" +
		"7|ann|1700000000|1700008000|1700008100|cpu=8,node=2|n[1-2]|CANCELLED by 0\n8+1|ann|1700000000|1700008000|1700008100|cpu=1,node=1|n1|FAILED\n9|bob|1700000000|1700008000|Unknown|cpu=1,node=1|n1|RUNNING\n"
	jobs, nodes, notes, err := readExport(t, epoch, Source{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"7 ann/trace  at 0 waited 3600 ran 3600 of 3600: 2 x 2000 mGPU 5000 mCPU 768 MiB [] []", "7 ann/trace  at 0 waited 8000 ran 100 of 100: 2 x 0 mGPU 4000 mCPU 0 MiB [] []", "8+1 ann/trace  at 0 waited 8000 ran 100 of 100: 1 x 0 mGPU 1000 mCPU 0 MiB [] []"}
	if diff := cmp.Diff(want, jobs); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"n1 5 cores 768 MiB [] GPU GPU", "n2 5 cores 768 MiB [] GPU GPU"}, nodes); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	for _, want := range []string{"1 jobs left out: they run still", "1 parts of heterogeneous jobs", "1 tries of jobs", "1 jobs had cores or GPUs unevenly", "no Timelimit column"} {
		if !strings.Contains(strings.Join(notes, "\n"), want) {
			t.Errorf("no note says %q: %q", want, notes)
		}
	}
}

func TestBadSacct(t *testing.T) {
	const head = "JobID|User|Submit|Start|End|AllocTRES|NodeList\n"
	for name, tc := range map[string]struct{ text, want string }{
		"empty":       {"", "the file is empty; export it by: sacct -a -X -P"},
		"no header":   {"1|ann|2026-01-01T00:00:00\n", "line 1: \"1|ann|2026-01-01T00:00:00\" is no header of sacct -P"},
		"missing":     {"JobID|User|State|Submit\n", "line 1: columns are missing: Start, End or Elapsed or ElapsedRaw, AllocTRES or ReqTRES or AllocCPUS or NCPUS or ReqCPUS; export it by"},
		"twice":       {"JobID|JobID\n", "line 1: column \"jobid\" is there twice"},
		"cut off":     {head + "1|ann|2026-01-01T00:0", "line 2: has 3 fields, the header has 7"},
		"time":        {head + "1|ann|yesterday|2026-01-01T00:00:00|2026-01-01T00:00:00|cpu=1|n1\n", "line 2: submit: \"yesterday\" is no time"},
		"tres":        {head + "1|ann|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T00:00:01|cpu=x|n1\n", "line 2: cpu=x: \"x\" is no amount"},
		"too much":    {head + "1|ann|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T00:00:01|cpu=1,node=900000000|n1\n", "which cannot be"},
		"node list":   {head + "1|ann|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T00:00:01|cpu=1|n[1\n", "line 2: nodelist \"n[1\""},
		"no machine":  {"JobID|User|Submit|Start|End|AllocTRES\n", "give --nodes and --gpus-per-node, or --procs, or export NodeList too"},
		"wide header": {strings.Repeat("x|", 1<<20), "read"},
	} {
		_, _, _, err := readExport(t, tc.text, Source{})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
}

// TestAgainstRecord: a site that let jobs of one GPU wait behind one of another
// partition is shown who would have waited less.
func TestAgainstRecord(t *testing.T) {
	const text = "JobID|User|Account|Partition|Submit|Eligible|Start|End|Timelimit|ReqTRES|AllocTRES|NodeList\n" +
		"1|ann|a|gpu|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T02:00:00|02:00:00|gres/gpu=2,cpu=2|gres/gpu=2,cpu=2,node=1|n1\n" +
		"2|bob|a|cpu|2026-01-01T00:10:00|2026-01-01T00:10:00|2026-01-01T02:00:00|2026-01-01T02:30:00|01:00:00|cpu=2|cpu=2,node=1|n2\n" +
		"3|bob|a|cpu|2026-01-01T00:10:00|2026-01-01T00:10:00|2026-01-01T02:30:00|2026-01-01T03:00:00|01:00:00|cpu=2|cpu=2,node=1|n2\n"
	w, nodes, err := Source{Format: "sacct", Trace: strings.NewReader(text)}.Read()
	if err != nil {
		t.Fatal(err)
	}
	reports, _, err := Options{Policy: "gbatch", Estimates: "user", Seed: 1}.AgainstRecord(w, nodes, Watch{})
	if err != nil || len(reports) != 3 {
		t.Fatalf("%d reports, %v", len(reports), err)
	}
	want := []Group{
		{By: "user", Name: "bob", Jobs: 2, WasMean: 7500, WasP95: 8400, Mean: 900, P95: 1800, Sooner: 2},
		{By: "user", Name: "ann", Jobs: 1},
		{By: "partition", Name: "cpu", Jobs: 2, WasMean: 7500, WasP95: 8400, Mean: 900, P95: 1800, Sooner: 2},
		{By: "partition", Name: "gpu", Jobs: 1},
	}
	if diff := cmp.Diff(want, reports[2].Groups); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	if reports[0].AvgWait != 5000 || reports[2].AvgWait != 600 {
		t.Errorf("mean waits %v and %v, want 5000 and 600", reports[0].AvgWait, reports[2].AvgWait)
	}
	if text := Text(reports...); !strings.Contains(text, "would wait") || !strings.Contains(text, "  bob") || !strings.Contains(text, "note: the export does not say: constraints") {
		t.Errorf("the text is\n%s", text)
	}
}

func FuzzSacct(f *testing.F) {
	for _, name := range []string{"testdata/sacct.txt", "testdata/sacct-short.txt"} {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		w, _, err := Source{Format: "sacct", Trace: strings.NewReader(text), Nodes: 1, PerNode: 1}.Read()
		if err != nil {
			return
		}
		for _, j := range w.Jobs {
			if j.Submit < 0 || j.Run < 0 || j.Waited < 0 || j.Limit <= 0 || j.Shape.MilliGPU < 0 || j.Shape.MilliCPU < 0 || j.Shape.MemMiB < 0 {
				t.Errorf("%+v %+v", j, j.Shape)
			}
		}
	})
}
