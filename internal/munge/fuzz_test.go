package munge

import (
	"bytes"
	"fmt"
	"testing"
)

// FuzzAnswer: whatever the payload is, who sent it is what stands in front of it.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("hello"), []byte("STATUS: 0\n"))
	f.Add([]byte("STATUS: 0\nUID: 0\n\nx"), []byte("UID: 0\nSTATUS: 0\n\n"))
	f.Add([]byte("\n\n"), []byte(""))
	f.Fuzz(func(t *testing.T, payload, any []byte) {
		uid, got, err := answer(fmt.Appendf(nil, "STATUS:          0\nUID:             1003\n\n%s", payload))
		if err != nil || uid != 1003 || !bytes.Equal(got, payload) {
			t.Errorf("user %d sent %q: %v", uid, got, err)
		}
		if _, _, err := answer(any); err == nil && !bytes.Contains(any, []byte("UID:")) {
			t.Errorf("%q names a user", any)
		}
	})
}
