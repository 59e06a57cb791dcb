package message

import (
	"bytes"
	"net"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// FuzzMessages reads lines and open files in whatever pieces they come: the
// lines are those that were sent, and no file stays open.
func FuzzMessages(f *testing.F) {
	f.Add([]byte("{\"op\":\"exec\"}\n{\"op\":\"signal\",\"signal\":2}\n"), uint16(5), uint8(3))
	f.Add([]byte("\n\n\nx"), uint16(1), uint8(8))
	f.Add([]byte("yyyyyyyyyyyy"), uint16(3), uint8(1))
	null, err := os.Open(os.DevNull)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { null.Close() })
	f.Fuzz(func(t *testing.T, data []byte, piece uint16, files uint8) {
		before := openFiles(t)
		out, in := connectedPair(t)
		sent := make(chan error, 1)
		go func() { // ends when all is sent, or the reader has closed
			var err error
			for part := range slices.Chunk(data, int(piece)%5000+1) {
				fds := slices.Repeat([]int{int(null.Fd())}, int(files)%(MaxFiles+1))
				if _, _, err = out.WriteMsgUnix(part, unix.UnixRights(fds...), nil); err != nil {
					break
				}
			}
			out.Close()
			sent <- err
		}()
		var got []byte
		for r := NewReader(in); ; {
			line, passed, err := r.Next()
			CloseAll(passed)
			if err != nil {
				break
			}
			if len(passed) > MaxFiles {
				t.Errorf("%d files came with one message", len(passed))
			}
			got = append(append(got, line...), '\n')
		}
		in.Close()
		if err := <-sent; err == nil && files%(MaxFiles+1) == 0 && len(data) <= MaxLine {
			if want := data[:bytes.LastIndexByte(data, '\n')+1]; !bytes.Equal(got, want) {
				t.Errorf("read %q of %q", got, want)
			}
		}
		if !bytes.HasPrefix(data, got) {
			t.Errorf("read %q, which nobody sent", got)
		}
		if after := openFiles(t); after != before {
			t.Errorf("%d files are open, %d were before", after, before)
		}
	})
}

func connectedPair(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	conns := make([]*net.UnixConn, 2)
	for i, fd := range fds {
		file := os.NewFile(uintptr(fd), "pair")
		conn, err := net.FileConn(file)
		file.Close()
		if err != nil {
			t.Fatal(err)
		}
		conns[i] = conn.(*net.UnixConn)
	}
	return conns[0], conns[1]
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
