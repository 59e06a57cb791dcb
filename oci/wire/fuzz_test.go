package wire

import "testing"

// FuzzReply reads anything as a shim's answer.
func FuzzReply(f *testing.F) {
	f.Add([]byte(`{"v":1,"seq":3,"phase":"running","pid":7}`))
	f.Add([]byte(`{"seq":-1}`))
	f.Fuzz(func(t *testing.T, line []byte) { _, _ = Parse(line) })
}
