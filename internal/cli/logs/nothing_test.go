package logs

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/cli/clitest"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// TestLogSaysWhyNothing: a log that has nothing to show says why, and one that has
// something says no more than that.
func TestLogSaysWhyNothing(t *testing.T) {
	silent := tries(job.Finished, 1)
	never := tries(job.Failed, 1)
	never.Attempts[0].Ranks[0].Exit = &node.Exit{Code: 255, Reason: job.ImagePull, Message: "there is no image busybox:99"}
	other := tries(job.Finished, 1)
	other.Attempts[0].Ranks = append(other.Attempts[0].Ranks, api.Rank{Exit: &node.Exit{Message: "rank 0 is done on n1: the others are ended"}})
	for name, tc := range map[string]struct {
		o    Log
		text string
		d    *api.JobDetail
		out  string
		said string
	}{
		"written":            {Log{}, "hello\n", silent, "hello\n", ""},
		"silent":             {Log{}, "", silent, "", "wrote nothing to its standard output or error in its try 1"},
		"never began":        {Log{}, "", never, "", "its program never began: there is no image busybox:99"},
		"another never":      {Log{}, "", other, "", "the program of job 12 wrote nothing"},
		"another never, all": {Log{All: true}, "", other, "", "the program of job 12 wrote nothing"},
		"that one never":     {Log{Rank: 1}, "", other, "", "never began: rank 0 is done on n1"},
		"runs":               {Log{}, "", tries(job.Running, 1), "", "has written nothing yet"},
		"not since":          {Log{Since: "10m"}, "", silent, "", "has written nothing since 10m"},
		"grep":               {Log{Grep: "^l.ss"}, "epoch 1\nloss 3\nno loss\nless", silent, "loss 3\nless", ""},
		"grep, none":         {Log{Grep: "nan"}, "epoch 1\n", silent, "", `no line of the log matches "nan"`},
		"grep, silent":       {Log{Grep: "nan"}, "", silent, "", "wrote nothing"},
		"grep of ranks":      {Log{Grep: "^l", All: true}, "epoch 1\nloss 3\n", silent, "0: loss 3\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := clitest.Start(t, &clitest.Fake{
				Log:   func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, tc.text) },
				Polls: func(int, string) *api.JobDetail { return tc.d },
			})
			tc.o.ID = "12"
			if err := tc.o.Run(t.Context(), b.App); err != nil {
				t.Fatal(err)
			}
			if b.Out.String() != tc.out {
				t.Errorf("printed %q, want %q", b.Out.String(), tc.out)
			}
			if said := b.Err.String(); tc.said == "" && said != "" || !strings.Contains(said, tc.said) {
				t.Errorf("said %q, want %q", said, tc.said)
			}
		})
	}
	b := clitest.Start(t, &clitest.Fake{})
	if err := (&Log{ID: "12", Grep: "("}).Run(t.Context(), b.App); err == nil || !strings.Contains(err.Error(), "--grep") {
		t.Errorf("a broken pattern: %v", err)
	}
}
