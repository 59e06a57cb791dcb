package launch

import (
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// pair is two ends of a connection by TCP.
func pair(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// TestHandOver: whoever gets a connection has each frame of it, those that were looked at
// before and a half one too.
func TestHandOver(t *testing.T) {
	theirs, ours := pair(t)
	srun, rank := Resume(theirs, nil), Resume(ours, nil)
	send := func(kind Kind, body string) {
		t.Helper()
		if err := srun.Send(kind, 3, body); err != nil {
			t.Fatal(err)
		}
	}
	send(KindStartIn, "{}")
	send(KindInput, "one")
	first, err := rank.Next()
	if err != nil {
		t.Fatal(err)
	}
	var seen atomic.Int32
	enough := make(chan struct{})
	w := rank.Watch(func(_ Frame, err error) {
		if err == nil && seen.Add(1) == 2 {
			close(enough)
		}
	})
	send(KindSignal, "two")
	half := Frame{Kind: KindInput, Body: []byte("three")}.Bytes()
	if _, err := theirs.Write(half[:10]); err != nil {
		t.Fatal(err)
	}
	select {
	case <-enough:
	case <-time.After(time.Minute):
		t.Fatal("the frames are not seen")
	}
	other := Resume(ours, append(first.Bytes(), w.Stop()...))
	if _, err := theirs.Write(half[10:]); err != nil {
		t.Fatal(err)
	}
	srun.Close()
	var got []string
	for {
		f, err := other.Next()
		if err != nil {
			break
		}
		got = append(got, string(f.Kind)+" "+string(f.Body))
	}
	if diff := cmp.Diff([]string{"b {}", "i one", "k two", "i three"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWithoutLogin: what is shown of an image's name has no password in it.
func TestWithoutLogin(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0a", 32)
	for name, want := range map[string]string{
		"": "", "busybox": "busybox", "reg:5000/a/b:1": "reg:5000/a/b:1", "reg/a" + digest: "reg/a" + digest, "a" + digest: "a" + digest,
		"ann@reg/a": "reg/a", "ann:pass@reg/a:1": "reg/a:1", "ann:p@ss/w@reg/a" + digest: "reg/a" + digest, "oci:/data/layout": "oci:/data/layout",
	} {
		if got := WithoutLogin(name); got != want {
			t.Errorf("%s is shown as %s, want %s", name, got, want)
		}
	}
}
