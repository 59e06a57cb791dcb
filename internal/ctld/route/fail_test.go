package route

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"gbatch/internal/api"
)

// TestFailuresAreFewLines: whoever finds a request that goes wrong cannot fill the
// log with it, and one route's failures do not hide another's.
func TestFailuresAreFewLines(t *testing.T) {
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	table := []Route{{Pattern: "GET /one", failures: failures(log)}, {Pattern: "GET /two", failures: failures(log)}}
	for i := range 1000 {
		e, _ := table[i%2].said(errors.New([]string{"disk A", "disk B"}[i%2]))
		if e.Code != api.CodeInternal || strings.Contains(e.Error(), "disk") {
			t.Fatalf("answered %+v", e)
		}
	}
	if n := strings.Count(text.String(), "\n"); n != 2 || !strings.Contains(text.String(), "disk A") || !strings.Contains(text.String(), "disk B") {
		t.Errorf("%d lines:\n%.2000s", n, &text)
	}
}
