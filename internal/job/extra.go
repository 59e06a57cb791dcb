package job

import (
	"fmt"
	"net/mail"
)

const maxExtra = 100

var extraFields = []field[Extra]{
	{"sshPubKeys", func(d *decoder, n *node, e *Extra) { d.sshKeys(n, e) }, false},
	{"emailOnQueue", func(d *decoder, n *node, e *Extra) { d.strs(n, &e.EmailOnQueue, mailAddress) }, false},
	{"emailOnRun", func(d *decoder, n *node, e *Extra) { d.strs(n, &e.EmailOnRun, mailAddress) }, false},
	{"emailOnEnd", func(d *decoder, n *node, e *Extra) { d.strs(n, &e.EmailOnEnd, mailAddress) }, false},
	{"emailOnHalt", func(d *decoder, n *node, e *Extra) { d.strs(n, &e.EmailOnHalt, mailAddress) }, false},
	{"emailOnRestart", func(d *decoder, n *node, e *Extra) { d.strs(n, &e.EmailOnRestart, mailAddress) }, false},
}

func readExtra(d *decoder, n *node, r *Request) {
	var e Extra
	if !object(d, n, extraFields, &e) || empty(e) {
		return
	}
	r.Extra = &e
}

func (d *decoder) sshKeys(n *node, e *Extra) {
	if d.strs(n, &e.SSHPubKeys, plain(0, 16<<10)); len(e.SSHPubKeys) > 0 {
		d.note("is kept for information: gexec opens a shell in the running job, and needs no key")
	}
}

// mailAddress wants NAME@HOST alone.
func mailAddress(s string) string {
	a, err := mail.ParseAddress(s)
	if err != nil || a.Address != s || len(s) > 254 {
		return fmt.Sprintf("is %s, which is no mail address", quote(s))
	}
	return ""
}
