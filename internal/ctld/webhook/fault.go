package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	"gbatch/internal/reach"
)

// fault is why somebody was not told: a sentence for the job's user, which is kept while
// that is so, and what only the log has, for those who run the site.
type fault struct {
	said string
	err  error
}

func (f *fault) Error() string { return f.said }

// detail is what the log has of an error.
func detail(err error) error {
	var f *fault
	if errors.As(err, &f) {
		return f.err
	}
	return err
}

// unreachable is all that users hear of an address that they named and nothing was heard
// from. If a name that is not known, one that means an address inside the site, and a
// machine that refuses were answered otherwise each, one could ask for names of the site.
var unreachable = fmt.Sprintf("it cannot be reached: its name is not known, nothing answers there within %v, or this site sends nothing there", sendTime)

// faultOf says why a request failed. Nothing of an answer is in it, which may be long, and
// may be a program's that is not meant for those who read it.
func faultOf(err error) error {
	var refused *reach.Error
	var name *net.DNSError
	var timeout net.Error
	var certificate *tls.CertificateVerificationError
	var connection *net.OpError
	switch {
	case errors.As(err, &refused):
		return &fault{unreachable, refused}
	case errors.As(err, &name):
		return &fault{unreachable, name}
	case errors.As(err, &timeout) && timeout.Timeout():
		return &fault{unreachable, fmt.Errorf("it does not answer within %v", sendTime)}
	case errors.As(err, &certificate):
		return fmt.Errorf("its certificate is refused: %s", doubt(certificate.Err))
	case errors.As(err, &connection):
		return &fault{unreachable, connection}
	}
	return errors.New("what it answers is not HTTP, or has too long a header")
}

// doubt is what is wrong with a certificate, without the names in it.
func doubt(err error) string {
	var name x509.HostnameError
	var authority x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &name):
		return "it is for another name"
	case errors.As(err, &authority):
		return "nobody whom this machine trusts has signed it"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its time is over, or has not come"
	}
	return "it is not valid"
}
