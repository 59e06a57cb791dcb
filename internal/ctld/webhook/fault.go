package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	"gbatch/internal/reach"
)

// fault says why a request failed. Users see it, and it is kept while somebody is not
// told: so nothing of an answer is in it, which may be long, and may be a program's that
// is not meant for them, and nothing of how this site looks names up.
func fault(err error) error {
	var refused *reach.Error
	var name *net.DNSError
	var timeout net.Error
	var certificate *tls.CertificateVerificationError
	var connection *net.OpError
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &name) && name.IsNotFound:
		return errors.New("its name is not known")
	case errors.As(err, &name):
		return errors.New("its name could not be looked up")
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("it does not answer within %v", sendTime)
	case errors.As(err, &certificate):
		return fmt.Errorf("its certificate is refused: %s", doubt(certificate.Err))
	case errors.As(err, &connection):
		return fmt.Errorf("%s: %w", connection.Op, connection.Err)
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
