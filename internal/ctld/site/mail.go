package site

import (
	"net"
	"strconv"

	"github.com/wneessen/go-mail"
)

// Mail is how users are told of their jobs, where their documents ask for
// it.
type Mail struct {
	SMTP string `yaml:"smtp"` // HOST:PORT of a relay that takes mail from here without a login; TLS is used if it has it
	From string `yaml:"from"`
}

func (m *Mail) check(bad func(path, format string, a ...any)) {
	if m == nil {
		return
	}
	if _, port, err := net.SplitHostPort(m.SMTP); err != nil || !isPort(port) {
		bad("mail.smtp", "%q: want HOST:PORT, as mail.example.org:25", m.SMTP)
	}
	if err := mail.NewMsg().From(m.From); err != nil {
		bad("mail.from", "%q is no mail address", m.From)
	}
}

func isPort(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n > 0 && n < 1<<16
}
