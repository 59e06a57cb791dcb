package job

import (
	"fmt"
	"net/mail"

	"gbatch/internal/document"
)

var extraFields = []field[Extra]{
	{"sshPubKeys", func(d *decoder, n *node, e *Extra) { d.sshKeys(n, e) }, false},
	{"emailOnQueue", func(d *decoder, n *node, e *Extra) { d.mailTo(n, &e.EmailOnQueue) }, false},
	{"emailOnRun", func(d *decoder, n *node, e *Extra) { d.mailTo(n, &e.EmailOnRun) }, false},
	{"emailOnEnd", func(d *decoder, n *node, e *Extra) { d.mailTo(n, &e.EmailOnEnd) }, false},
	{"emailOnHalt", func(d *decoder, n *node, e *Extra) { d.mailTo(n, &e.EmailOnHalt) }, false},
	{"emailOnRestart", func(d *decoder, n *node, e *Extra) { d.mailTo(n, &e.EmailOnRestart) }, false},
}

func readExtra(d *decoder, n *node, r *Request) {
	var e Extra
	if document.Object(d, n, extraFields, &e) && !empty(e) {
		r.Extra = &e
	}
}

func (d *decoder) sshKeys(n *node, e *Extra) {
	if d.strs(n, &e.SSHPubKeys, plain(0, 16<<10)); len(e.SSHPubKeys) > 0 {
		d.Note(n, "is kept for information: gexec opens a shell in the running job, and needs no key")
	}
}

// mailTo reads addresses; false and "" are none, as GPULab's own files have them.
func (d *decoder) mailTo(n *node, to *[]string) {
	switch {
	case n.Kind == document.BoolKind && n.Text == "true":
		d.Problem(n, "says that somebody is told, and not who", "write the mail address")
	case n.Kind == document.BoolKind || n.Kind == document.StringKind && n.Text == "":
	default:
		d.strs(n, to, mailAddress)
	}
}

// mailAddress wants NAME@HOST alone.
func mailAddress(s string) string {
	a, err := mail.ParseAddress(s)
	if err != nil || a.Address != s || len(s) > 254 {
		return fmt.Sprintf("is %s, which is no mail address", document.Quote(s))
	}
	return ""
}

// Mails says whether anybody is to be told of anything by mail.
func (e *Extra) Mails() bool {
	return e != nil && len(e.EmailOnQueue)+len(e.EmailOnRun)+len(e.EmailOnEnd)+len(e.EmailOnHalt)+len(e.EmailOnRestart) > 0
}
