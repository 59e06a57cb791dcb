package slurm

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/cli/clitest"
)

// TestStrftime compares with what the C library writes, by the program date.
func TestStrftime(t *testing.T) {
	const form = "%a|%A|%b|%B|%c|%C|%d|%D|%e|%F|%g|%G|%h|%H|%I|%j|%k|%l|%m|%M|%n|%p|%P|%r|%R|%s|%S|%t|%T|%u|%U|%V|%w|%W|%x|%X|%y|%Y|%z|%Z|%%|%-d|%_m|%0e|%Ey|%Od|x"
	for _, moment := range []time.Time{
		time.Date(2026, 3, 1, 9, 5, 7, 0, time.UTC), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2024, 12, 30, 12, 30, 0, 0, time.UTC),
		time.Date(2023, 1, 1, 23, 59, 59, 0, time.UTC), time.Date(2020, 12, 31, 13, 0, 0, 0, time.UTC), time.Date(1969, 12, 31, 23, 59, 59, 0, time.UTC),
	} {
		cmd := exec.Command("date", "-u", "-d", moment.Format(time.RFC3339), "+"+form)
		cmd.Env = append(os.Environ(), "LC_ALL=C")
		want, err := cmd.Output()
		if err != nil {
			t.Skip("needs GNU's program date:", err)
		}
		if diff := cmp.Diff(string(want), strftime(form, moment)+"\n"); diff != "" {
			t.Errorf("%s (-want +got):\n%s", moment, diff)
		}
	}
	for form, want := range map[string]string{"%J %d": "%J 01", "%d%": "01%", "%-": "%-", "ä": "ä", "": ""} {
		if got := strftime(form, time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)); got != want {
			t.Errorf("%q: %q, want %q", form, got, want)
		}
	}
}

// TestRelative names days as Slurm does, which was asked at that time.
func TestRelative(t *testing.T) {
	now := time.Date(2026, 11, 23, 9, 26, 0, 0, time.UTC)
	for days, want := range map[int]string{0: "09:26:00", 1: "Tomorr 09:26", 2: "Wed 09:26", 6: "Sun 09:26", 7: "30 Nov 09:26", 8: "1 Dec 09:26", 45: "7 Jan 2027", -1: "Ystday 09:26", -2: "21 Nov 09:26", -400: "19 Oct 2025"} {
		if got := relative(now.AddDate(0, 0, days), now); got != want {
			t.Errorf("%d days: %q, want %q", days, got, want)
		}
	}
}

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
