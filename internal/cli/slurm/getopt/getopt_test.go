package getopt

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/cli/exit"
)

// TestParse reads command lines in all forms that Slurm's commands take.
func TestParse(t *testing.T) {
	tests := map[string]struct{ rest, user, format, me, err string }{
		"12 13":                 {rest: "12 13"},
		"-u ann 12":             {rest: "12", user: "ann"},
		"-uann":                 {user: "ann"},
		"--user=ann,bob -u eve": {user: "ann bob eve"},
		"--user ann":            {user: "ann"},
		"--uid ann":             {user: "ann"},
		"-o %i|%j=":             {format: "%i|%j="},
		"--format=%i=%j":        {format: "%i=%j"},
		"-hmu ann":              {user: "ann", me: "true"},
		"-hmuann":               {user: "ann", me: "true"},
		"12 --me 13":            {rest: "12 13", me: "true"},
		"--me -- -u ann":        {rest: "-u ann", me: "true"},
		"-":                     {rest: "-"},
		"-o -x":                 {format: "-x"},
		"--format= 12":          {rest: "12"},
		"--me=yes":              {err: "option --me takes no value"},
		"-u":                    {err: "option -u needs a value"},
		"--format":              {err: "option --format needs a value"},
		"-l":                    {err: "option -l is not played here: use gqueue"},
		"--long=1":              {err: "option --long is not played here: use gqueue"},
		"-hl":                   {err: "option -l is not played here: use gqueue"},
		"-z":                    {err: "option -z is not played here: there are -u --user --uid, -o --format, -m --me, -h --noheader"},
		"--users=x":             {err: "option --users is not played here: there are -u --user --uid, -o --format, -m --me, -h --noheader"},
		"--us ann --f=%i --no":  {user: "ann", format: "%i"},
		"--u ann":               {user: "ann"},
		"--me --ui ann":         {user: "ann", me: "true"},
		"--lon":                 {err: "option --long is not played here: use gqueue"},
		"--n=1":                 {err: "option --noheader takes no value"},
		"--help":                {err: "option --help is not played here: there are -u --user --uid, -o --format, -m --me, -h --noheader"},
	}
	for line, want := range tests {
		var users []string
		format, me, noHeader := "", false, false
		rest, err := Parse(strings.Fields(line), []Option{
			List(&users, "-u", "--user", "--uid"), String(&format, "-o", "--format"), Bool(&me, "-m", "--me"), Bool(&noHeader, "-h", "--noheader"),
			Instead("use gqueue", "-l", "--long"),
		})
		got := want
		got.err, got.rest, got.user, got.format, got.me = "", strings.Join(rest, " "), strings.Join(users, " "), format, ""
		if me {
			got.me = fmt.Sprint(me)
		}
		if err != nil {
			got.rest, got.user, got.format, got.me, got.err = "", "", "", "", err.Error()
			if exit.Code(err) != exit.Usage {
				t.Errorf("%s: exit code %d", line, exit.Code(err))
			}
		}
		if diff := cmp.Diff(fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}
