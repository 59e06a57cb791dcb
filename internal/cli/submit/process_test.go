package submit

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli/clitest"
	"gbatch/internal/job"
)

// build makes a program of this module.
func build(t testing.TB, pkg string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-o", file, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
	return file
}

// startBytes is how much the packages of gsubmit may allocate before it begins,
// and startOurs how much of it those of this module. A regular expression is
// 2 to 150 KiB, whether it is used or not.
const (
	startBytes = 200 << 10
	startOurs  = 24 << 10
)

// TestStartIsCheap: what gsubmit does before its first line is bounded, so that nothing is
// made there which most runs do not use.
func TestStartIsCheap(t *testing.T) {
	cmd := exec.Command(build(t, "gbatch/cmd/gsubmit"), "--version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	trace, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.ENOEXEC) {
		t.Skip("SKIPPED: this machine does not run what it builds: the test is emulated")
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, trace)
	}
	var all, ours int
	for _, m := range regexp.MustCompile(`(?m)^init (\S+) .* ([0-9]+) bytes, [0-9]+ allocs$`).FindAllStringSubmatch(string(trace), -1) {
		n, _ := strconv.Atoi(m[2])
		if all += n; regexp.MustCompile(`^gbatch/`).MatchString(m[1]) {
			ours += n
		}
	}
	if all == 0 || all > startBytes || ours > startOurs {
		t.Errorf("%d bytes are allocated before main, %d by our packages, of %d and %d at most:\n%s", all, ours, startBytes, startOurs, trace)
	}
}

// BenchmarkProcess is gsubmit as a process beside the least that submits a job,
// in turns. What counts is the ratio: at most 1.5 is aimed at.
func BenchmarkProcess(b *testing.B) {
	fake := &clitest.Fake{Submit: func(*api.SubmitRequest, string) (*api.SubmitResponse, *api.Error) {
		return &api.SubmitResponse{Number: 12, State: job.Queued}, nil
	}}
	s := clitest.Start(b, fake)
	least, ours := build(b, "./testdata/minimal"), build(b, "gbatch/cmd/gsubmit")
	var spent [3][]float64 // milliseconds of processor time
	var switches [3]int64
	b.Setenv("GBATCH_CONTROLLER", "unix://"+s.Socket)
	for b.Loop() {
		for i, cmd := range []*exec.Cmd{exec.Command(least, s.Socket, "job.json"), exec.Command(ours, "job.json"), exec.Command(ours, "--hold", "job.json")} {
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("%v\n%s", err, out)
			}
			p := cmd.ProcessState
			spent[i] = append(spent[i], float64(p.UserTime()+p.SystemTime())/float64(time.Millisecond))
			switches[i] += p.SysUsage().(*syscall.Rusage).Nvcsw
		}
	}
	for i, name := range []string{"minimal", "gsubmit", "gsubmit--hold"} {
		slices.Sort(spent[i])
		b.ReportMetric(spent[i][len(spent[i])/2], "cpu-ms/"+name)
		b.ReportMetric(float64(switches[i])/float64(len(spent[i])), fmt.Sprintf("switches/%s", name))
	}
	for i, name := range []string{"of-minimal", "hold-of-minimal"} {
		b.ReportMetric(spent[i+1][len(spent[i+1])/2]/spent[0][len(spent[0])/2], name)
	}
}
