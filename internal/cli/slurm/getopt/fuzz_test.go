package getopt

import (
	"strings"
	"testing"
)

// FuzzOptions reads anything as the words of a command line: whatever is taken of
// it was in it, and an error names an option.
func FuzzOptions(f *testing.F) {
	for _, line := range []string{"-u\nann\n12", "-hmuann", "--format=%i=%j\n--", "--me=yes", "-", "--=\n-u", "-\x00"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words := strings.Split(line, "\n")
		var users []string
		var format string
		var me bool
		rest, err := Parse(words, []Option{
			List(&users, "-u", "--user"), String(&format, "-o", "--format"), Bool(&me, "-m", "--me"), Instead("use gqueue", "-l", "--long"),
		})
		if err != nil {
			if err.Error() == "" || strings.Contains(err.Error(), "unknown") {
				t.Errorf("%q: %v", words, err)
			}
			return
		}
		for _, w := range append(append(rest, users...), format) {
			if !strings.Contains(line, w) {
				t.Errorf("%q gives %q", words, w)
			}
		}
	})
}
