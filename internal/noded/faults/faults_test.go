package faults

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/node"
)

// Faults are told until they are noted, over restarts, and no number comes twice.
func TestFaults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "faults.json")
	open := func() *Faults {
		return Open(file, time.UnixMilli(1_000_000), slog.New(slog.DiscardHandler))
	}
	f := open()
	f.Note("one")
	f.Note("two")
	f = open()
	f.Noted(1)
	f.Noted(0) // an answer that comes late
	f = open()
	f.Note("three")
	want := []node.Fault{{Seq: 2, Text: "two"}, {Seq: 3, Text: "three"}}
	if diff := cmp.Diff(want, f.List()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f.Noted(3)
	f = open()
	if list := f.List(); len(list) > 0 {
		t.Errorf("still told: %v", list)
	}
	for i := range 2 * maxFaults {
		f.Note(fmt.Sprint(i))
	}
	if list := open().List(); len(list) != maxFaults || list[0] != (node.Fault{Seq: 4, Text: "0"}) {
		t.Errorf("bounded to %v", list)
	}
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if list := open().List(); len(list) != 1 || list[0].Seq != 1_000_000 || !strings.Contains(list[0].Text, "cannot be read any more") {
		t.Errorf("with a damaged file it is drained for %v", list)
	}
}
