package mail

import (
	"bytes"
	"net/mail"
	"slices"
	"testing"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// FuzzMessage writes mails about jobs whose names, texts and receivers are anything: there
// is one receiver and one subject, and no line of the head that mails always have not.
func FuzzMessage(f *testing.F) {
	f.Add("train", "exit code 1", "ann@example.org")
	f.Add("x\r\nBcc: eve@example.org\r\n\r\nhello", "\r\n.\r\nMAIL FROM:<a@b>", "ann@example.org\r\nBcc: eve@example.org")
	f.Add("=?utf-8?q?x?=", "\x1b[2J", `"ann, eve"@example.org`)
	f.Add("a\x00b\u2028c", "--boundary", "ann@example.org, eve@example.org")
	always := []string{"Content-Transfer-Encoding", "Content-Type", "Date", "From", "Message-Id", "Mime-Version", "Subject", "To", "User-Agent", "X-Mailer"}
	f.Fuzz(func(t *testing.T, name, text, to string) {
		l := Letter{Receivers: []string{to}, Change: Change{To: job.Failed}, Job: &state.Job{Number: 7, Name: name, Text: text, Owner: &state.Owner{User: "ann", Project: "lab"}}}
		m, err := l.message("gbatch@example.org")
		if err != nil {
			return
		}
		var b bytes.Buffer
		if _, err := m.WriteTo(&b); err != nil {
			return
		}
		got, err := mail.ReadMessage(&b)
		if err != nil {
			t.Fatalf("it cannot be read: %v", err)
		}
		for k, v := range got.Header {
			if !slices.Contains(always, k) || len(v) != 1 {
				t.Errorf("%s: %q", k, v)
			}
		}
		if list, err := got.Header.AddressList("To"); err != nil || len(list) != 1 {
			t.Errorf("it goes to %v (%v)", list, err)
		}
	})
}
