package image

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"

	"gbatch/oci/image/bounds"
	"gbatch/oci/image/unpack"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"golang.org/x/sys/unix"
)

// classifyRemote turns what the registry client reports into a sentence.
// login is who asked, for the message: a user name or empty.
func classifyRemote(err error, host, login string) *PullError {
	if e, ok := errors.AsType[*PullError](err); ok {
		return e
	}
	if answer, ok := errors.AsType[*transport.Error](err); ok {
		return classifyStatus(answer, host, login)
	}
	if isCorrupt(err) {
		return wrap(Corrupt, err, "what registry %s sent does not match its digest", host)
	}
	e := wrap(Unreachable, err, "registry %s cannot be reached: %s", host, netReason(err))
	e.Temporary = temporaryNet(err)
	return e
}

func classifyStatus(answer *transport.Error, host, login string) *PullError {
	switch code := answer.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		if login == "" {
			return wrap(Denied, answer, "registry %s wants a login: the image is private or does not exist", host)
		}
		return wrap(Denied, answer, "login refused by registry %s for user %s, or that user may not read the image", host, login)
	case code == http.StatusNotFound:
		return wrap(NotFound, answer, "no such image at registry %s", host)
	case code == http.StatusTooManyRequests:
		e := wrap(Unreachable, answer, "registry %s limits the rate of pulls: log in to it, use a mirror or try later", host)
		e.Temporary = true
		return e
	default:
		e := wrap(Unreachable, answer, "registry %s answered %d %s", host, code, http.StatusText(code))
		e.Temporary = code >= 500 || code == http.StatusRequestTimeout || answer.Temporary()
		return e
	}
}

func wrap(kind Kind, cause error, format string, args ...any) *PullError {
	return &PullError{Kind: kind, Detail: fmt.Sprintf(format, args...), cause: cause}
}

// isCorrupt knows the client's verification errors by their text: their type
// is internal to it.
func isCorrupt(err error) bool {
	s := err.Error()
	return strings.Contains(s, "error verifying") || strings.Contains(s, "does not match requested digest")
}

// netReason says what went wrong without the URL, which may be signed.
func netReason(err error) string {
	var unknownCA x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var record tls.RecordHeaderError
	var dns *net.DNSError
	switch {
	case errors.As(err, &unknownCA):
		return "its certificate is signed by an unknown authority; put the CA into the node's certificate directory"
	case errors.As(err, &hostname):
		return "its certificate is for another host name"
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch) && !isTimeout(err):
		return "it speaks plain http; list it as an insecure registry on the node if that is meant"
	case errors.As(err, &dns):
		if dns.IsNotFound {
			return "no such host"
		}
		return "its name cannot be looked up now"
	case errors.Is(err, unix.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, bounds.ErrStalled):
		return bounds.ErrStalled.Error()
	case isTimeout(err):
		return "no answer in time"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, unix.ECONNRESET):
		return "the connection broke off"
	}
	for {
		u, ok := errors.AsType[*url.Error](err)
		if !ok {
			return err.Error()
		}
		err = u.Err
	}
}

func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout() || errors.Is(err, context.DeadlineExceeded)
}

func temporaryNet(err error) bool {
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return false
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op != nil {
		return true
	}
	return isTimeout(err) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
		errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE) || errors.Is(err, bounds.ErrStalled)
}

// classifyUnpack is for what unpack reports, unless that has one of ours in its
// chain, which came from where the layer was read or from the promise of room.
func classifyUnpack(err error) error {
	if e, ok := errors.AsType[*PullError](err); ok {
		return e
	}
	e, ok := errors.AsType[*unpack.Error](err)
	if !ok {
		return err
	}
	kind := Corrupt
	switch e.Kind {
	case unpack.Unsupported:
		kind = Unsupported
	case unpack.Local:
		kind = Internal
	}
	return wrap(kind, e.Cause, "%s", e.Detail)
}

func tooBig(limit int64) error { return classifyUnpack(unpack.TooBig(limit)) }

// classifyLocal is for errors of local files and of the store itself.
func classifyLocal(err error) *PullError {
	if e, ok := errors.AsType[*PullError](err); ok {
		return e
	}
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return wrap(DiskFull, err, "the node's image store is full")
	case errors.Is(err, fs.ErrNotExist):
		return wrap(NotFound, err, "no such file on the node")
	}
	return wrap(Internal, err, "%v", err)
}
