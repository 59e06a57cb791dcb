package peers

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/noded/config"
	"gbatch/internal/pki"
	"gbatch/oci/image/share"
)

// layers is a Source.
type layers map[string]func() (io.Reader, int64, error) // by digest

func (l layers) Shared(_, _ context.Context, _, digest string) (io.ReadCloser, int64, error) {
	one, ok := l[digest]
	if !ok {
		return nil, 0, share.ErrLacks
	}
	r, n, err := one()
	if err != nil {
		return nil, 0, err
	}
	return io.NopCloser(r), n, nil
}

// site is an authority with a node that gives layers.
type site struct {
	authority *pki.Authority
	addr      string
	sent      atomic.Int64
}

func newSite(t *testing.T, c config.ImagePeers, from Source) *site {
	t.Helper()
	a, err := pki.Open(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{authority: a}
	c.Listen = "127.0.0.1:0"
	server := &Server{Config: &c, TLS: s.node(t, "giver"), Source: from, Sent: func(n int64) { s.sent.Add(n) }, Log: slog.New(slog.DiscardHandler)}
	if err := server.Listen(); err != nil {
		t.Fatal(err)
	}
	s.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(server.Port()))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { // ended below
		server.Run(ctx)
		close(done)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return s
}

func (s *site) node(t *testing.T, name string) *pki.NodeTLS {
	t.Helper()
	key, err := pki.OpenKey(t.TempDir() + "/key")
	if err != nil {
		t.Fatal(err)
	}
	req, err := pki.Request(key)
	if err != nil {
		t.Fatal(err)
	}
	text, _, err := s.authority.SignNode(name, req)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := pki.Pair(text, key)
	if err != nil {
		t.Fatal(err)
	}
	return &pki.NodeTLS{Pin: s.authority.Pin(), Now: time.Now, Own: func() *tls.Certificate { return pair }}
}

const box = "registry.example.org/team/box"

// named is what the controller tells node n of the one that gives layers.
func (s *site) named(t *testing.T, n, of string) *api.ImagePeers {
	t.Helper()
	ticket, authority, err := s.authority.SignLayers(pki.LayersTicket{Node: n, Image: of, Until: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	return &api.ImagePeers{Nodes: []api.ImagePeer{{Node: "giver", Address: s.addr}}, Ticket: ticket, Authority: authority}
}

func usual() config.ImagePeers { return config.ImagePeers{Uploads: 4, Rate: 1 << 40} }

// TestLayer: a node with a ticket for an image has its layers, and no other node and no other image's.
func TestLayer(t *testing.T) {
	body := bytes.Repeat([]byte("layer"), 1<<18)
	s := newSite(t, usual(), layers{
		"whole": func() (io.Reader, int64, error) { return bytes.NewReader(body), int64(len(body)), nil },
		"broken": func() (io.Reader, int64, error) {
			return io.MultiReader(bytes.NewReader(body[:1<<19]), failing{}), int64(len(body)), nil
		},
		"never": func() (io.Reader, int64, error) { return nil, 0, share.ErrNever },
	})
	taker := s.node(t, "taker")
	for name, tc := range map[string]struct {
		as     *pki.NodeTLS
		named  *api.ImagePeers
		image  string
		digest string
		want   error  // of asking
		said   string // likewise
		breaks bool   // while it is read
	}{
		"whole":            {as: taker, named: s.named(t, "taker", box), image: box, digest: "whole"},
		"breaks off":       {as: taker, named: s.named(t, "taker", box), image: box, digest: "broken", breaks: true},
		"not there":        {as: taker, named: s.named(t, "taker", box), image: box, digest: "other", want: share.ErrLacks},
		"unpacked only":    {as: taker, named: s.named(t, "taker", box), image: box, digest: "never", want: share.ErrNever},
		"another image":    {as: taker, named: s.named(t, "taker", box), image: box + "2", digest: "whole", said: "403"},
		"another's":        {as: s.node(t, "thief"), named: s.named(t, "taker", box), image: box, digest: "whole", said: "403"},
		"without a ticket": {as: taker, named: &api.ImagePeers{Nodes: s.named(t, "", "").Nodes, Authority: s.named(t, "", "").Authority}, image: box, digest: "whole", said: "403"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Of(tc.as, tc.named)[0].Layer(t.Context(), tc.image, tc.digest, time.Second)
			switch {
			case tc.want != nil:
				if !errors.Is(err, tc.want) {
					t.Errorf("got %v, want %v", err, tc.want)
				}
				return
			case tc.said != "":
				if err == nil || !strings.Contains(err.Error(), tc.said) {
					t.Errorf("got %v, want %q", err, tc.said)
				}
				return
			case err != nil:
				t.Fatal(err)
			}
			defer r.Close()
			got, err := io.ReadAll(r)
			if tc.breaks != (err != nil) || !tc.breaks && !bytes.Equal(got, body) {
				t.Errorf("read %d bytes: %v", len(got), err)
			}
		})
	}
	if n := s.sent.Load(); n != int64(len(body))+1<<19 {
		t.Errorf("it counted %d bytes", n)
	}
	if Of(nil, s.named(t, "taker", box)) != nil || Of(taker, nil) != nil {
		t.Error("a node that shares nothing asks others")
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the disk failed") }

// TestUploadsAreBounded: a node that sends as much as it may says so at once.
func TestUploadsAreBounded(t *testing.T) {
	first, last := io.Pipe()
	c := usual()
	c.Uploads = 1
	s := newSite(t, c, layers{"long": func() (io.Reader, int64, error) { return first, 2, nil }})
	p := Of(s.node(t, "taker"), s.named(t, "taker", box))[0]
	got := make(chan error, 1)
	go func() { // ended below
		r, err := p.Layer(t.Context(), box, "long", 0)
		if err == nil {
			_, err = io.ReadAll(r)
			r.Close()
		}
		got <- err
	}()
	_, _ = last.Write([]byte("a")) // is taken when it is being sent
	if _, err := p.Layer(t.Context(), box, "long", 0); !errors.Is(err, share.ErrLacks) {
		t.Errorf("got %v beside one that is sent", err)
	}
	_, _ = last.Write([]byte("b"))
	last.Close()
	if err := <-got; err != nil {
		t.Error(err)
	}
}
