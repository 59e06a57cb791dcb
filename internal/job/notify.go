package job

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"gbatch/internal/document"
)

// Notify is somebody whom the job's user wants told of it.
type Notify struct {
	To     string   `json:"to"`               // NAME@HOST, or https://, and http:// where the site allows
	Format string   `json:"format,omitempty"` // of what is sent to a web address: json (empty), slack, text
	On     []string `json:"on,omitempty"`     // of NotifyEvents; empty: end
}

// warnings are the parts of a time limit, in percent and ascending, of whose use people
// can be told.
var warnings = []int{50, 80, 90}

// NotifyEvents are what people can be told of.
var NotifyEvents = []string{"begin", "end", "fail", "requeue", "limit", Warning(warnings[0]), Warning(warnings[1]), Warning(warnings[2])}

// Warning is the event that so much of the time limit is used, in percent.
func Warning(percent int) string { return fmt.Sprintf("limit-%d", percent) }

// NotifyFormats are those of what a web address gets.
var NotifyFormats = []string{"json", "slack", "text"}

const maxNotify = 8

var notifyFields = []field[Notify]{
	{"to", func(d *decoder, n *node, x *Notify) { d.str(n, &x.To, notifyTo) }, true},
	{"format", func(d *decoder, n *node, x *Notify) { d.str(n, &x.Format, oneOf(NotifyFormats...)) }, false},
	{"on", func(d *decoder, n *node, x *Notify) { d.strs(n, &x.On, oneOf(NotifyEvents...)) }, false},
}

func readNotify(d *decoder, n *node, g *Gbatch) {
	d.elements(n, maxNotify, func(_ int, n *node) {
		var x Notify
		if n.Kind == document.StringKind {
			d.str(n, &x.To, notifyTo)
		} else if !document.Object(d, n, notifyFields, &x) {
			return
		}
		if x.To == "" {
			return // wrong, and said
		}
		if x.Format != "" && x.Mail() {
			d.ProblemAt(n, "format", "is for web addresses, and \"to\" is a mail address", "remove it")
		}
		if slices.ContainsFunc(g.Notify, func(o Notify) bool { return o.To == x.To }) {
			d.ProblemAt(n, "to", "is an address that another entry has", "give it once, with all that it is told in \"on\"")
		}
		g.Notify = append(g.Notify, x)
	})
}

// notifyTo wants a mail or a web address.
func notifyTo(s string) string {
	if !strings.Contains(s, "://") {
		if wrong := mailAddress(s); wrong != "" {
			return fmt.Sprintf("is %s, which is neither NAME@HOST nor https://HOST/PATH", document.Quote(s))
		}
		return ""
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || len(s) > 2048 {
		return "must be https://HOST/PATH, of 2048 characters at most and without a password" // not shown: it may be a secret by itself
	}
	return ""
}

// Mail says whether it is by mail.
func (x *Notify) Mail() bool { return !strings.Contains(x.To, "://") }

// Wants says whether one of the words for what happened is one that it is for.
func (x *Notify) Wants(words []string) bool {
	on := x.On
	if len(on) == 0 {
		on = []string{"end"}
	}
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(on, w) })
}

// Shown is whom it tells, without what may be secret of an address.
func (x *Notify) Shown() string {
	if x.Mail() {
		return x.To
	}
	u, err := url.Parse(x.To)
	if err != nil {
		return "a web address"
	}
	return u.Scheme + "://" + u.Host + "/..."
}

// Notifies says whether the document names anybody who is to be told of anything.
func (s *Spec) Notifies() bool { return s.Request.Extra.Mails() || len(s.gbatch().Notify) > 0 }

// Warnings are the parts of the time limit, in percent and ascending, of whose use
// somebody is to be told.
func (s *Spec) Warnings() (list []int) {
	for _, percent := range warnings {
		if slices.ContainsFunc(s.gbatch().Notify, func(x Notify) bool { return slices.Contains(x.On, Warning(percent)) }) {
			list = append(list, percent)
		}
	}
	return list
}

// Mails says whether anybody is to be told by mail.
func (s *Spec) Mails() bool {
	return s.Request.Extra.Mails() || slices.ContainsFunc(s.gbatch().Notify, func(x Notify) bool { return x.Mail() })
}
