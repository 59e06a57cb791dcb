package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"gbatch/internal/ctld/mail"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// moved is a change of a job's state that services are to be told of, as stored
// under state.KindNotice. Its key has the job and the job's version.
type moved struct {
	mail.Change
	AtMS int64  `json:"at"` // Unix milliseconds
	User string `json:"user,omitempty"`
	Told bool   `json:"told,omitempty"` // the job's document names who is to be told
}

// body is a message, as services get it in the format json.
type body struct {
	Type string    `json:"type"` // job. and what a service may ask for in its "on"
	Time time.Time `json:"timestamp"`
	Data data      `json:"data"`
}

type data struct {
	ID      string     `json:"id"`
	Number  job.Number `json:"number"`
	UUID    string     `json:"uuid"`
	Name    string     `json:"name"`
	User    string     `json:"user"`
	Project string     `json:"project"`
	From    job.State  `json:"from,omitempty"`
	State   job.State  `json:"state"`
	Reason  string     `json:"reason,omitempty"`  // of an end
	Text    string     `json:"text,omitempty"`    // the same in a sentence
	Next    job.Number `json:"next,omitempty"`    // the job that continues a halted one
	Percent int        `json:"percent,omitempty"` // of its time limit that is used, of the type job.limit
}

// message is the body of a message in a service's format.
func message(format, event string, n moved, j *state.Job) []byte {
	b := body{Type: "job." + event, Time: time.UnixMilli(n.AtMS).UTC(), Data: data{
		ID: j.ID(), Number: j.Number, UUID: j.Identity(), Name: j.Name, User: j.Owner.User, Project: j.Owner.Project, From: n.From, State: n.To, Percent: n.Percent}}
	if n.To.Final() {
		b.Data.Reason, b.Data.Text = string(j.Reason), j.Text
	}
	if n.To == job.Halted {
		b.Data.Next = j.Next
	}
	if format != "slack" && format != "text" {
		return state.Encode(b)
	}
	_, what := n.What(j)
	text := fmt.Sprintf("Job %s (%s) of %s, project %s, %s", j.ID(), j.Name, j.Owner.User, j.Owner.Project, what)
	if b.Data.Text != "" {
		text += ": " + b.Data.Text
	}
	if format == "text" {
		return []byte(text)
	}
	out, err := json.Marshal(map[string]string{"text": plain.Replace(text)})
	if err != nil {
		panic(err) // a string always encodes
	}
	return out
}

// plain takes a text's meaning as Slack's markup, by which a job's name could call
// everybody in a channel.
var plain = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// stamp is what tells a message from others, and a try from the one before.
type stamp struct {
	id string
	at time.Time
}

// sign puts the headers of a message into h, by the convention of Standard
// Webhooks: its id, which stays the same over tries, the time, and a signature over
// both and the body.
func sign(h http.Header, s stamp, text, secret []byte) {
	at := strconv.FormatInt(s.at.Unix(), 10)
	h.Set("Webhook-Id", s.id)
	h.Set("Webhook-Timestamp", at)
	if len(secret) > 0 {
		mac := hmac.New(sha256.New, secret)
		fmt.Fprintf(mac, "%s.%s.%s", s.id, at, text)
		h.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
}

// secretOf reads what signs a service's messages: bytes, or whsec_ and base64.
func secretOf(w *site.Webhook) ([]byte, error) {
	if w.SecretFile == "" {
		return nil, nil
	}
	text, err := os.ReadFile(w.SecretFile)
	if err != nil {
		return nil, err
	}
	word := strings.TrimSpace(string(text))
	if coded, ok := strings.CutPrefix(word, "whsec_"); ok {
		return base64.StdEncoding.DecodeString(coded)
	}
	if word == "" {
		return nil, fmt.Errorf("%s is empty", w.SecretFile)
	}
	return []byte(word), nil
}
