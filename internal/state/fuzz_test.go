package state

import (
	"bytes"
	"strings"
	"testing"

	"gbatch/internal/job"
)

// FuzzFind reads anything as people name jobs and tasks.
func FuzzFind(f *testing.F) {
	for _, s := range []string{"123", "123_7", "123_[3-9,12]", "0", "18446744073709551616", "123_[1-5:9223372036854775807]", "_", "1_", "1_[", "+1", "a280f7e8-b1e6", "---"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, ok := job.ParseNumber(s); ok && (n == 0 || strings.Trim(s, "0123456789") != "") {
			t.Errorf("%q is job %d", s, n)
		}
		if n, set, ok := ParseTask(s); ok && (n == 0 || set.Len() < 1 || set.Len() > job.MaxTasks) {
			t.Errorf("%q is %d tasks of job %d", s, set.Len(), n)
		}
		if id := normUUID(s); len(id) > 32 {
			t.Errorf("%q is %q", s, id)
		}
	})
}

// FuzzDecode reads anything as a record: it is refused, or can be written again, and is the
// same with what other jobs share, before and after one shares it.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"number":1,"owner":{"user":"a"},"request":{"shape":{}},"state":"QUEUED"}`))
	f.Add([]byte(`{"number":1,"owner":{},"request":{"shape":{}},"state":"RUNNING","attempt":null}`))
	f.Add([]byte(`{"tasks":{}}`))
	f.Fuzz(func(t *testing.T, v []byte) {
		if j, err := DecodeJob(v); err == nil {
			v := Encode(j)
			want, err := DecodeJob(v)
			if err != nil {
				return
			}
			var in Interner
			for range 2 {
				got, err := in.Job(v)
				if err != nil || !bytes.Equal(Encode(got), Encode(want)) {
					t.Fatalf("%s with what is shared, %s without; %v", Encode(got), Encode(want), err)
				}
			}
		}
		_, _ = DecodeNode("n", v)
		_, _ = DecodeEnded(Record{Kind: KindEnded, Value: v})
	})
}
