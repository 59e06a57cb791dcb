package strftime

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestFormat compares with what the C library writes, by the program date.
func TestFormat(t *testing.T) {
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
		if diff := cmp.Diff(string(want), Format(form, moment)+"\n"); diff != "" {
			t.Errorf("%s (-want +got):\n%s", moment, diff)
		}
	}
	for form, want := range map[string]string{"%J %d": "%J 01", "%d%": "01%", "%-": "%-", "ä": "ä", "": ""} {
		if got := Format(form, time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)); got != want {
			t.Errorf("%q: %q, want %q", form, got, want)
		}
	}
}

// TestRelative names days as Slurm does, which was asked at that time.
func TestRelative(t *testing.T) {
	now := time.Date(2026, 11, 23, 9, 26, 0, 0, time.UTC)
	for days, want := range map[int]string{0: "09:26:00", 1: "Tomorr 09:26", 2: "Wed 09:26", 6: "Sun 09:26", 7: "30 Nov 09:26", 8: "1 Dec 09:26", 45: "7 Jan 2027", -1: "Ystday 09:26", -2: "21 Nov 09:26", -400: "19 Oct 2025"} {
		if got := Relative(now.AddDate(0, 0, days), now); got != want {
			t.Errorf("%d days: %q, want %q", days, got, want)
		}
	}
}
