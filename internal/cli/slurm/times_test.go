package slurm

import (
	"strings"
	"testing"

	"gbatch/internal/cli/clitest"
)

// TestTimeFormat writes times as SLURM_TIME_FORMAT says, in all commands that have
// them, and orders by the time and not by its text.
func TestTimeFormat(t *testing.T) {
	for _, test := range []struct{ form, line, want, said string }{
		{"", "squeue -h -t R -o %i=%S", "12=2026-03-01T07:30:00 16=2026-02-28T03:00:00", ""},
		{"standard", "squeue -h -t R -o %i=%S", "12=2026-03-01T07:30:00 16=2026-02-28T03:00:00", ""},
		{"relative", "squeue -h -t R -o %i=%S", "12=07:30:00 16=Ystday 03:00", ""},
		{"%d", "squeue -h -t R -S S -o %i=%S", "16=28 12=01", ""},
		{"%d.%m.", "squeue -h -j 13 -o %S|%V|%e", "01.03.|01.03.|N/A", ""},
		{"%s", "squeue -s -h -o %i=%S", "12.batch=1772350200 12.1=1772351400", ""},
		{"%s", "sacct -X -n -P -j 9 -o Submit,Start,End,Eligible", "1772348400|1772262000|1772352000|1772348400", ""},
		{"%s", "scontrol -o show res", "ReservationName=course StartTime=1772355600 EndTime=1772362800 Duration=02:00:00 ", ""},
		{"%s", "scontrol show config", "Configuration data as of 1772355600 ", ""},
		{"never", "squeue -h -t R -o %i=%S", "12=2026-03-01T07:30:00 16=2026-02-28T03:00:00", "error: invalid SLURM_TIME_FORMAT = 'never': use standard, relative, or a form with %, as %d.%m. %H:%M\n"},
	} {
		b := clitest.Start(t, controller())
		b.App.Environ = func() []string { return []string{"SLURM_TIME_FORMAT=" + test.form} }
		words := strings.Fields(test.line)
		code := play0(b.App, words[0], words[1:])
		if got := strings.Join(strings.Fields(b.Out.String()), " "); code != 0 || !strings.HasPrefix(got, test.want) || b.Err.String() != test.said {
			t.Errorf("%q %s: ended with %d, said %q and printed\n%s, want\n%s", test.form, test.line, code, b.Err.String(), got, test.want)
		}
	}
}
