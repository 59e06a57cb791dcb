package ctld

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/site"
)

// everyByte is how far apart the bytes are that TestDamagedDirectory changes. Their places are other ones in each file.
const everyByte = 41

// says is what a refused start tells people to do.
var says = regexp.MustCompile("put it back|gctld restore|gctld accept-loss")

// TestDamagedDirectory changes bytes of each file that the controller has beside its store, one at a time, and cuts each file: the
// start is refused by a sentence that says what to do, or nothing has another meaning than before: the
// site's pin, a user's token, the jobs, and the time.
func TestDamagedDirectory(t *testing.T) {
	s := newSite(t, nil)
	s.submit(hello(1), "")
	secret, pin, states := s.token(api.TokenRequest{Use: api.TokenUser, User: "ann"}).Secret, s.pin(), s.states()
	s.stop()
	whole := s.cfg.Dir
	try := func(t *testing.T, name string, text []byte) {
		t.Parallel() // each mostly waits for the disk
		s := &testSite{t: t, cfg: s.cfg}
		s.cfg.Dir = filepath.Join(t.TempDir(), "dir")
		if err := errors.Join(os.CopyFS(s.cfg.Dir, os.DirFS(whole)), os.WriteFile(filepath.Join(s.cfg.Dir, name), text, 0o600)); err != nil {
			t.Fatal(err)
		}
		server, err := Open(func() (site.Config, error) { return s.cfg, nil }, slog.New(slog.DiscardHandler))
		if err != nil {
			if !says.MatchString(err.Error()) {
				t.Errorf("%s as %q: it is refused without a word on what to do: %v", name, text, err)
			}
			return
		}
		s.run(server)
		defer s.stop()
		ann := &client.Client{Address: s.remote(), Token: secret}
		defer ann.Close()
		_, err = ann.Jobs(t.Context(), client.JobFilter{})
		if off := time.Since(s.server.loop.Now()); err != nil || s.pin() != pin || !maps.Equal(s.states(), states) || off.Abs() > time.Hour {
			t.Errorf("%s as %q: the pin is %s and was %s, the jobs are %v, the clock is off by %s, and ann's token: %v", name, text, s.pin(), pin, s.states(), off, err)
		}
	}
	files, err := os.ReadDir(whole)
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for i, f := range files {
		if !f.Type().IsRegular() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(whole, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for at := i % everyByte; at < len(text); at += everyByte {
			changed := append([]byte{}, text...)
			changed[at] ^= 1 << (at % 4)
			t.Run(fmt.Sprintf("%s/%d", f.Name(), at), func(t *testing.T) { try(t, f.Name(), changed) })
			tried++
		}
		for _, n := range []int{0, 1, len(text) / 2, max(len(text)-1, 0)} {
			t.Run(fmt.Sprintf("%s/first %d", f.Name(), n), func(t *testing.T) { try(t, f.Name(), text[:min(n, len(text))]) })
		}
	}
	if tried < 20 {
		t.Errorf("only %d bytes of %v were changed", tried, files)
	}
}
