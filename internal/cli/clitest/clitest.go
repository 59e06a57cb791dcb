// Package clitest has what the tests of the commands share: a controller that
// answers from what a test gives it, the surroundings of a command, and golden
// files.
package clitest

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/cli"
	"gbatch/internal/client"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

var Now = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

func Main(m *testing.M) {
	time.Local = time.UTC
	for _, k := range []string{"GBATCH_CONTROLLER", "GBATCH_TOKEN", "GBATCH_TOKEN_FILE", "GBATCH_CA"} {
		os.Unsetenv(k)
	}
	dir, err := os.MkdirTemp("", "gbatch-cli")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_CONFIG_HOME", dir)
	os.Setenv("XDG_STATE_HOME", dir)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

type Bench struct {
	Out, Err bytes.Buffer
	App      *cli.App
	Socket   string
	Slept    int
}

// Start makes the surroundings of a command; nil: no controller answers.
func Start(t testing.TB, h http.Handler) *Bench {
	t.Helper()
	b := &Bench{Socket: filepath.Join(t.TempDir(), "s")}
	if h != nil {
		l, err := net.Listen("unix", b.Socket)
		if err != nil {
			t.Fatal(err)
		}
		srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
		srv.Start()
		t.Cleanup(srv.Close)
	}
	b.App = &cli.App{
		Place: func() (string, string) { return "/home/ann/run", "login1" },
		Out:   &b.Out, Err: &b.Err, In: strings.NewReader(""),
		Client: &client.Client{Address: b.Socket}, Environ: os.Environ,
		Now: func() time.Time { return Now },
		Sleep: func(ctx context.Context, _ time.Duration) error {
			b.Slept++
			return ctx.Err()
		},
	}
	t.Cleanup(func() { b.App.Client.Close() })
	return b
}

func (b *Bench) Golden(t *testing.T, name string, code int) {
	t.Helper()
	got := strings.ReplaceAll(fmt.Sprintf("exit %d\n-- stdout --\n%s-- stderr --\n%s", code, b.Out.String(), b.Err.String()), b.Socket, "SOCKET")
	path := filepath.Join("testdata", name+".txt")
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run the test with -rewrite, and read what it writes)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// Clock is the clock of all tests.
func Clock() time.Time { return Now }
