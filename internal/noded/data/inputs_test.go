package data

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gbatch/internal/noded/config"
	"gbatch/internal/transfer"
	"gbatch/oci/draft"
)

// TestSetAsideBeforeStart: a cached input that is found damaged when a rank has it and has not mounted it yet is not there
// for that rank any more, which ends instead of beginning with it. What the log says names the rank.
func TestSetAsideBeforeStart(t *testing.T) {
	const holder = "7.0.0"
	from := t.TempDir()
	if err := os.WriteFile(filepath.Join(from, "x"), []byte("what came"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(from)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var log bytes.Buffer
	told := 0
	to := slog.New(slog.NewTextHandler(&log, nil))
	d, err := Open(&config.Config{Data: config.Data{Dir: t.TempDir(), CacheSize: 4 << 20, Parallel: 1}}, "a boot", to, func(n int) { told += n })
	if err != nil {
		t.Fatal(err)
	}
	src := transfer.DirSource(transfer.Dir{Root: root}, "")
	list, err := src.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	get := func(holder string) (key string) {
		t.Helper()
		key, _, err := d.cache.Get(t.Context(), d.Client, transfer.Caller{Scope: "p", User: "ann", Holder: holder}, transfer.Fetch{URI: "file:///p/", Source: src, Objects: list})
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	key := get(holder)
	in := Inputs{Mounts: []draft.Mount{{Source: d.cache.Content(key), Target: "/in"}}}
	scrub := func() int {
		t.Helper()
		n, err := d.Scrub(to, func(int64) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n, err := scrub(), in.There(); n != 0 || err != nil || log.Len() > 0 {
		t.Fatalf("a whole one: %d damaged, %v, logged %q", n, err, &log)
	}
	file := filepath.Join(d.cache.Content(key), "x")
	if err := errors.Join(os.Chmod(file, 0o600), os.WriteFile(file, []byte("another!!"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if n := scrub(); n != 1 {
		t.Fatalf("%d were damaged", n)
	}
	if err := in.There(); err == nil || !strings.Contains(err.Error(), "an input is not there any more") {
		t.Errorf("a rank may begin with what is damaged: %v", err)
	}
	logged := func(words ...string) {
		t.Helper()
		for _, word := range words {
			if !strings.Contains(log.String(), word) {
				t.Errorf("%q is not in the log: %s", word, &log)
			}
		}
		log.Reset()
	}
	logged(key, holder)

	// So does the next one, whose note is damaged when one more rank asks for it.
	get("8.0.0")
	if err := os.WriteFile(filepath.Join(d.cfg.Dir, "cache", key, "whole"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if get("9.0.0") != key || told != 1 {
		t.Errorf("%d counted, want 1", told)
	}
	logged(key, "8.0.0", "the note that it is whole is damaged")
}
