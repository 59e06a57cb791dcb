package store

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

func ranged(t *testing.T, s *Store, kind state.Kind, in Span, most int) []string {
	t.Helper()
	var out []string
	if err := s.Range(kind, in, func(r state.Record) (bool, error) {
		out = append(out, fmt.Sprintf("%d %d %s %s", r.Seq, r.Job, r.Name, r.Value))
		return len(out) < most, nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRange(t *testing.T) {
	s := open(t, vfs.NewMem())
	defer s.Close()
	if err := s.Commit([]state.Record{
		{Kind: state.KindEnded, Seq: 10, Job: 3, Value: []byte("a")},
		{Kind: state.KindEnded, Seq: 10, Job: 1, Value: []byte("b")},
		{Kind: state.KindEnded, Seq: 9, Job: 7, Value: []byte("c")},
		{Kind: state.KindEnded, Seq: 300, Job: 2, Value: []byte("d")},
		{Kind: state.KindDay, Seq: 20000, Name: "p/u", Value: []byte("e")},
		{Kind: state.KindDay, Seq: 20001, Name: "p/u", Value: []byte("f")},
	}); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		kind state.Kind
		in   Span
		most int
		want []string
	}{
		"all":       {state.KindEnded, Span{Place{}, Place{Seq: 1000}, false}, 9, []string{"9 7  c", "10 1  b", "10 3  a", "300 2  d"}},
		"backward":  {state.KindEnded, Span{Place{}, Place{Seq: 1000}, true}, 2, []string{"300 2  d", "10 3  a"}},
		"from job":  {state.KindEnded, Span{Place{10, 2}, Place{Seq: 300}, false}, 9, []string{"10 3  a"}},
		"to job":    {state.KindEnded, Span{Place{Seq: 10}, Place{10, 3}, true}, 9, []string{"10 1  b"}},
		"one day":   {state.KindDay, Span{Place{Seq: 20000}, Place{Seq: 20001}, false}, 9, []string{"20000 0 p/u e"}},
		"both days": {state.KindDay, Span{Place{Seq: 20000}, Place{Seq: 20002}, false}, 9, []string{"20000 0 p/u e", "20001 0 p/u f"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ranged(t, s, tc.kind, tc.in, tc.most)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestFormat1 opens a store that was written before jobs had an index by their
// end, and finds them by it.
func TestFormat1(t *testing.T) {
	fs := vfs.NewMem()
	s := open(t, fs)
	old := func(n job.Number, state string, ended int) []byte {
		return []byte(fmt.Sprintf(`{"n":%d,"id":"00000000000000000000000000000001","name":"train","owner":{"user":"ann","project":"vision"},`+
			`"request":{"shape":{"milliCpu":1000},"limit":60000},"state":%q,"reason":"OOM","v":3,"submitted":1,"since":2,"ended":%d}`, n, state, ended))
	}
	err := errors.Join(s.Commit([]state.Record{
		{Kind: state.KindHistory, Job: 1, Value: old(1, "FAILED", 500)},
		{Kind: state.KindJob, Job: 2, Value: old(2, "FINISHED", 900)},
		{Kind: state.KindJob, Job: 3, Value: old(3, "QUEUED", 0)},
	}), s.db.Set(keyFormat, strconv.AppendUint(nil, 1, 10), pebble.Sync), s.Close())
	if err != nil {
		t.Fatal(err)
	}
	s = open(t, fs)
	defer s.Close()
	want := []string{
		`500 1  {"u":"ann","p":"vision","n":"train","s":"FAILED","r":"OOM"}`,
		`900 2  {"u":"ann","p":"vision","n":"train","s":"FINISHED","r":"OOM"}`,
	}
	if diff := cmp.Diff(want, ranged(t, s, state.KindEnded, Span{To: Place{Seq: 1000}}, 9)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n, err := s.meta(keyFormat); n != formatNumber || err != nil {
		t.Errorf("format is %d, %v", n, err)
	}
}
