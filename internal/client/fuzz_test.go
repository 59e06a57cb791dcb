package client

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tmaxmax/go-sse"
	"go.yaml.in/yaml/v3"

	"gbatch/internal/api"
	"gbatch/internal/settings"
)

// FuzzAddress: an address that is taken leads to a socket, or by TLS to a
// controller whose key is known.
func FuzzAddress(f *testing.F) {
	for _, s := range []string{"unix:///run/gbatch/gctld.sock", "/run/x", "https://h:7077#sha256=Gs6YhXf2YAdHLDaPKHtSVdV9vmC5TDKi8YpSNAqyCnw", "https://u:p@h#x", "http://h", "unix:x", "https://h/..#sha256="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := parseAddress(s)
		switch {
		case err != nil:
		case e.socket != "" && (len(e.socket) > maxSocketPath || e.socket[0] != '/'):
			t.Errorf("%q is the socket %q", s, e.socket)
		case e.socket == "" && (e.pin == "" || !strings.HasPrefix(e.base, "https://")):
			t.Errorf("%q is %+v", s, e)
		}
	})
}

// FuzzConfig: a file of settings that is taken says the same when it is read again.
func FuzzConfig(f *testing.F) {
	for _, s := range []string{"controller: /run/x\ntokenFile: /etc/t\nauth: munge\nmungeSocket: /m\n", "a: &a [*a]", "{}", "&x controller: *x\n", "<<: [{auth: token}]"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var c, again config
		if settings.Read(text, &c).Err() != nil {
			return
		}
		written, err := yaml.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := settings.Read(written, &again).Err(); err != nil || again != c {
			t.Errorf("%q is read as %+v, written as %q, read as %+v, %v", text, c, written, again, err)
		}
	})
}

// FuzzEvents reads anything as a stream of events.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("event: job\nid: 7\ndata: {\"number\":1}\n\nevent: ping\nid: 8\ndata: {}\n\n"))
	f.Add([]byte("id: -1\ndata: x\n\n"))
	f.Add([]byte("event: node\ndata: [\ndata: ]\n\n\xff"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		n := 0
		for raw, err := range sse.Read(&wholeEvents{body: bytes.NewReader(stream)}, &sse.ReadConfig{MaxEventSize: maxEvent}) {
			if err != nil {
				return
			}
			ev := Event{Kind: raw.Type}
			if err := ev.fill(raw); err != nil {
				return
			}
			if (ev.Job != nil) != (raw.Type == api.EventJob) || (ev.Node != nil) != (raw.Type == api.EventNode) {
				t.Errorf("%+v is %+v", raw, ev)
			}
			if n++; n > len(stream) {
				t.Fatal("it has more events than bytes")
			}
		}
	})
}
