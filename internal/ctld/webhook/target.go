package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"gbatch/internal/ctld/mail"
	"gbatch/internal/job"
	"gbatch/internal/reach"
	"gbatch/internal/state"
)

// target is somebody who is to be told of a change: a service of the site's, or whom
// the job's document names.
type target struct {
	id    string // the same over messages; of a user's own, it begins with ownID
	shown string // to the job's user and in the log
	send  func(ctx context.Context, id string) error
}

// ownID is a target's that jobs of a user name, which nobody else's messages wait for.
func ownID(user, to string) string { return user + "\x00" + to }

// targets are all who are to be told. An error is about those whom the document names.
func (s *Sender) targets(n moved, event string, j *state.Job) (list []target, err error) {
	for _, h := range s.conf().Webhooks {
		if h.Wants(event, j.Owner.Project, j.Owner.User) {
			list = append(list, target{h.Name, "webhook " + h.Name, func(ctx context.Context, id string) error {
				secret, err := secretOf(&h)
				if err != nil {
					return &fault{"the key that signs its messages cannot be read", err}
				}
				return s.post(ctx, s.http, letter{url: h.URL, id: id, format: h.Format, text: message(h.Format, event, n, j), secret: secret})
			}})
		}
	}
	if !n.Told {
		return list, nil
	}
	spec, err := s.jobs.Document(j)
	if err != nil {
		return list, err
	}
	for _, to := range mail.Recipients(spec.Request.Extra, event) {
		list = s.addMail(list, to, n, j)
	}
	if spec.Gbatch == nil {
		return list, nil
	}
	for _, x := range spec.Gbatch.Notify {
		switch {
		case !x.Wants(words(n, event, j)):
		case x.Mail():
			list = s.addMail(list, x.To, n, j)
		default:
			list = append(list, target{ownID(j.Owner.User, x.To), x.Shown(), func(ctx context.Context, id string) error {
				u, err := url.Parse(x.To)
				if err == nil {
					err = s.guard().Scheme(u.Scheme)
				}
				if err != nil {
					return err
				}
				return s.post(ctx, s.out, letter{url: x.To, id: id, format: x.Format, text: message(x.Format, event, n, j)})
			}})
		}
	}
	return list, nil
}

// addMail adds a mail, where the site sends any.
func (s *Sender) addMail(list []target, to string, n moved, j *state.Job) []target {
	if s.conf().Mail == nil {
		return list // which the user was told when they submitted it
	}
	return append(list, target{ownID(j.Owner.User, to), to, func(ctx context.Context, _ string) error {
		return s.mail(ctx, mail.Letter{Receivers: []string{to}, Change: n.Change, Job: j})
	}})
}

// words are those of job.NotifyEvents that a change is.
func words(n moved, event string, j *state.Job) []string {
	switch {
	case event == "run":
		return []string{"begin"}
	case event == "restart":
		return []string{"requeue"}
	case event == "limit":
		return []string{job.Warning(n.Percent)}
	case n.To == job.Failed && j.Reason == job.MaxRuntime:
		return []string{"end", "fail", "limit"}
	case n.To == job.Failed:
		return []string{"end", "fail"}
	case n.To.Final() && (n.To != job.Halted || j.Next == 0): // else another job continues it
		return []string{"end"}
	}
	return nil
}

// guard is where addresses that users name may lead.
func (s *Sender) guard() reach.Guard {
	n := s.conf().Notify
	return reach.Guard{Hosts: n.Hosts, PlainHTTP: n.PlainHTTP}
}

// client is one that goes where it is sent, and to no other place by its answer.
func client(dial func(context.Context, string, string) (net.Conn, error)) *http.Client {
	return &http.Client{Timeout: sendTime,
		Transport:     &http.Transport{DialContext: dial, MaxResponseHeaderBytes: maxHeader, MaxIdleConnsPerHost: maxSending, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: sendTime},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// letter is one message to a web address.
type letter struct {
	url, id, format string
	text, secret    []byte
}

// post sends one message. Errors do not have the address, which may be a secret.
func (s *Sender) post(ctx context.Context, c *http.Client, l letter) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url, bytes.NewReader(l.text))
	if err != nil {
		return errors.New("the address is none")
	}
	r.Header.Set("Content-Type", "application/json")
	if l.format == "text" {
		r.Header.Set("Content-Type", "text/plain; charset=utf-8")
	}
	r.Header.Set("User-Agent", "gbatch")
	sign(r.Header, stamp{l.id, s.now()}, l.text, l.secret)
	resp, err := c.Do(r)
	if err != nil {
		return faultOf(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can serve again
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("it answers %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	return nil
}
