package oci_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"gbatch/oci/annex"
	"gbatch/oci/draft"
	"gbatch/oci/wire"
)

// TestFiltersOfAll: whatever is in a container has all of its filters of system calls, by which
// way it came there: as its program, as a command, in a container beside it, as one program after another.
func TestFiltersOfAll(t *testing.T) {
	const tell = `grep Seccomp_filters /proc/self/status; unshare -U true 2>&1 | grep -c permitted`
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`Seccomp_filters:\t(\d+)`).FindSubmatch(status)
	if found == nil {
		t.Skip("SKIPPED, this kernel does not count filters")
	}
	have, _ := strconv.Atoi(string(found[1]))
	want := fmt.Sprintf("Seccomp_filters:\t%d\n1\n", have+3)
	b := newBox(t, tell+`; echo up; until [ -e /v/over ]; do sleep 0.05; done`)
	dir := b.shares()
	s := b.start()
	b.await("up")
	if got := b.log(); got != want+"up\n" {
		t.Errorf("the program: %q, want %q", got, want)
	}
	if got, _ := execOutput(t, s, wire.ExecRequest{Args: []string{"sh", "-c", tell}}); got != want {
		t.Errorf("a command: %q, want %q", got, want)
	}
	if got := b.says(annex.Request{}, tell); got != want {
		t.Errorf("a container beside it: %q, want %q", got, want)
	}
	if err := os.WriteFile(filepath.Join(dir, "over"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if exit := b.exit(); exit.Code != 0 {
		t.Errorf("the program: %+v", exit)
	}
	list, first := newSeries(t, tell, nil)
	for i := range 2 {
		if exit := first.exit(); exit.Code != 0 || first.log() != want {
			t.Errorf("program %d: %+v, %q, want %q", i, exit, first.log(), want)
		}
		list.free(true)
		first = list.next(tell, nil)
	}
	off := newBox(t, tell)
	off.req.Seccomp = draft.SeccompOff
	if _, log := off.run(); log != fmt.Sprintf("Seccomp_filters:\t%d\n0\n", have) {
		t.Errorf("without filters: %q", log)
	}
}
