package oci_test

import (
	"strings"
	"testing"
)

// TestKeptHostile: what a program does to what stays in the container, or leaves there,
// harms itself at most: the next one finds nothing of it, or gets another container.
func TestKeptHostile(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		code   int
		free   bool // another may run there
	}{
		"signals":    {`for s in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31; do kill -$s 1; done; exit 6`, 6, true},
		"everybody":  {`trap '' TERM; kill -TERM -1; sleep 1000 & exit 7`, 7, true},
		"stopped":    {`sleep 1000 & kill -STOP $!; (trap '' HUP INT TERM; setsid sleep 1000 &); exit 8`, 8, true},
		"forks":      {`(while :; do (sleep 1000 &); (while :; do (sleep 1000 &); done) & done) 2>/dev/null & sleep 0.2; exit 9`, 9, true},
		"priority":   {`renice -n 5 -p 1; exit 1`, 1, false},
		"victim":     {`echo 900 >/proc/1/oom_score_adj; exit 1`, 1, false},
		"dumps":      {`echo 0x7f >/proc/1/coredump_filter; exit 1`, 1, false},
		"device":     {`echo x >/dev/left; exit 1`, 1, false},
		"descriptor": {`ls /proc/1/fd/ 2>/dev/null; cat /proc/1/mem 2>/dev/null; cat </proc/1/fd/4; exit 3`, 3, true},
		"depth":      {`cd /tmp; i=0; while [ $i -lt 300 ]; do mkdir d && cd d; i=$((i+1)); done; exit 4`, 4, true},
		"rights":     {`mkdir -m 0 /tmp/a; touch /tmp/a/b; chmod 0 /tmp; exit 5`, 5, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, b := newSeries(t, "exit 0", func(b *box) { b.req.Limits.Pids, b.req.Limits.MemoryBytes = 200, 256<<20 }) // so that processes run out, and memory does not
			b.exit()
			s.free(true)
			b = s.next(tc.script, nil)
			if e := b.exit(); e.Code != tc.code || e.Failure != nil {
				t.Errorf("%+v, log %q", e, b.log())
			}
			s.free(tc.free)
			if !tc.free {
				return
			}
			b = s.next(`find /tmp /dev/shm -mindepth 1; grep -l -e sleep /proc/[0-9]*/comm; stat -c %a /tmp; echo $(ls /proc/self/fd); cd /; exit 2`, nil)
			if e := b.exit(); e.Code != 2 || strings.TrimSpace(b.log()) != "1777\n0 1 2 3" { // the last is that of ls
				t.Errorf("the next one: %+v, log %q", e, b.log())
			}
		})
	}
}
