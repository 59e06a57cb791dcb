package socket

import (
	"testing"

	"golang.org/x/sys/unix"
)

// FuzzReceive reads anything as a packet.
func FuzzReceive(f *testing.F) {
	f.Add([]byte(`{"text":"x"}`))
	f.Add([]byte(`{"text":`))
	f.Add(make([]byte, maxPacket+1))
	f.Fuzz(func(t *testing.T, raw []byte) {
		ours, file, err := Pair(unix.SOCK_SEQPACKET)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := Conn(file)
		if err != nil {
			t.Fatal(err)
		}
		defer ours.Close()
		defer theirs.Close()
		if _, err := theirs.Write(raw); err != nil {
			t.Skip("more than a packet of the kernel's")
		}
		var p struct{ Text string }
		if with, err := Receive(ours, &p); err == nil && (with != nil || len(p.Text) > maxPacket) {
			t.Errorf("%q came with %v", p.Text, with)
		}
	})
}
