package table

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/cli/human"
)

func TestFold(t *testing.T) {
	for name, tc := range map[string]struct {
		width int
		want  string
	}{
		"any": {0, `
  TIME                 STATE    WHAT
  2026-03-01T09:00:00  RUNNING  started on gpu01, gpu02 and gpu03 after its image was pulled
  2026-03-01T09:01:00
  2026-03-01T09:02:00  FAILED   /a/path/that/is/longer/than/any/terminal/that/is/as/narrow/as/that
`},
		"beside the others": {60, `
  TIME                 STATE    WHAT
  2026-03-01T09:00:00  RUNNING  started on gpu01, gpu02 and
                                gpu03 after its image was
                                pulled
  2026-03-01T09:01:00
  2026-03-01T09:02:00  FAILED   /a/path/that/is/longer/than/
                                any/terminal/that/is/as/narr
                                ow/as/that
`},
		"below them": {40, `
  TIME                 STATE
      WHAT
  2026-03-01T09:00:00  RUNNING
      started on gpu01, gpu02 and gpu03
      after its image was pulled
  2026-03-01T09:01:00
  2026-03-01T09:02:00  FAILED
      /a/path/that/is/longer/than/any/te
      rminal/that/is/as/narrow/as/that
`},
	} {
		g := New("TIME", "STATE", "WHAT")
		g.Row("2026-03-01T09:00:00", "RUNNING", "started on gpu01, gpu02 and gpu03 after its image was pulled")
		g.Row("2026-03-01T09:01:00", "", "")
		g.Row("2026-03-01T09:02:00", "FAILED", "/a/path/that/is/longer/than/any/terminal/that/is/as/narrow/as/that")
		var b strings.Builder
		if err := g.Indent("  ").Fold(tc.width).Write(&b); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, "\n"+b.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for line := range strings.Lines(b.String()) {
			if n := human.Width(strings.TrimSuffix(line, "\n")); tc.width > 0 && n > tc.width {
				t.Errorf("%s: a line has %d columns: %s", name, n, line)
			}
		}
	}
}
