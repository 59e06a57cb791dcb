package ctld

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/site"
)

// TestNodePast: what becomes of a node is in the log once, and in the node's past,
// with who did it, over restarts too; a restart itself is not noted, and a node that is
// forgotten has none.
func TestNodePast(t *testing.T) {
	var log bytes.Buffer // of one goroutine at a time: the loop's, and this one while none runs
	cfg := site.Default()
	cfg.Dir, cfg.Socket, cfg.Listen, cfg.ReserveMiB = t.TempDir(), "", "127.0.0.1:0", 0
	s := &testSite{t: t, cfg: cfg, log: slog.New(slog.NewTextHandler(&log, nil))}
	s.start()
	t.Cleanup(func() { s.stop() })
	n := s.node("n1")
	if _, err := s.Drain(t.Context(), "n1", api.DrainRequest{Reason: "fan"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Resume(t.Context(), "n1", api.DrainRequest{}); err != nil {
		t.Fatal(err)
	}
	me := "root"
	want := []string{"up joined", "drained drained by " + me, "up resumed by " + me}
	past := func() {
		t.Helper()
		d, err := s.Node(t.Context(), "n1")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range d.Past {
			text, _, _ := strings.Cut(c.Text, ",")
			if text = c.State + " " + text; c.By != "" {
				text += " by " + c.By
			}
			got = append(got, text)
		}
		if diff := cmp.Diff(want, got); diff != "" || d.Since.IsZero() {
			t.Errorf("since %v (-want +got):\n%s", d.Since, diff)
		}
	}
	past()
	s.stop()
	s.start()
	past()
	n.s, n.seen = s, 0
	n.sync(nil)
	n.sync(nil)
	past()
	s.stop()
	var lines []string
	for line := range strings.Lines(log.String()) {
		if _, rest, ok := strings.Cut(line, `msg="node changed" `); ok {
			lines = append(lines, strings.TrimSpace(rest))
		}
	}
	told := []string{
		`node=n1 state=up what="joined, with 0 GPUs and 8 cores"`,
		fmt.Sprintf(`node=n1 state=drained what=drained reason="fan (%s)" by=%s`, me, me),
		fmt.Sprintf(`node=n1 state=up what=resumed by=%s`, me),
	}
	if diff := cmp.Diff(told, lines); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
	s.start()
	if _, err := s.Node(t.Context(), "n2"); !client.IsCode(err, api.CodeNotFound) {
		t.Errorf("a node that is not there: %v", err)
	}
}
