package image

import (
	"context"
	"errors"
	"net"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"

	"gbatch/oci/image/certs"
	"gbatch/oci/ref"
)

// What the store and its workers say to each other. Two kinds of connections
// join them. On the control socket go packets, which may carry a file. Each
// call has a stream of its own: a request goes one way, and replies the other
// way until one is the last. The store believes none of a worker's words that
// could lead it out of the worker's directory: see checkLayer.

// session tells a worker where the image comes from that it shall read now.
type session struct {
	Ref      ref.Ref     `json:"ref"`
	Hosts    []hostLogin `json:"hosts,omitempty"` // mirrors, and then the registry; none: a local image
	Insecure []string    `json:"insecure,omitempty"`
	Stall    int64       `json:"stall"` // nanoseconds
	Parallel int         `json:"parallel"`
	MaxBytes int64       `json:"maxBytes"` // that one image may unpack to
}

// hostLogin is a registry or mirror, and all that is needed to speak to it.
type hostLogin struct {
	Name       string      `json:"name"`
	Repository string      `json:"repository"`
	Mirror     bool        `json:"mirror,omitempty"`
	User       string      `json:"user,omitempty"` // whose login it is, for messages
	Login      credentials `json:"login"`
	certs.Certs
}

// credentials is what authn.AuthConfig holds, without its way of writing JSON.
type credentials struct {
	Username, Password, Auth, IdentityToken, RegistryToken string
}

// request is one call. Begin may come with any other part, and is done first.
type request struct {
	Begin    *session       `json:"begin,omitempty"`
	Resolve  bool           `json:"resolve,omitempty"`
	Manifest *v1.Hash       `json:"manifest,omitempty"`
	Blob     *v1.Descriptor `json:"blob,omitempty"`
	Has      *v1.Descriptor `json:"has,omitempty"`
	Layer    *layerOrder    `json:"layer,omitempty"`
}

// layerOrder asks for a layer to be unpacked into a directory of the worker's,
// or, without one, only to be downloaded and verified.
type layerOrder struct {
	Desc   v1.Descriptor `json:"desc"`
	DiffID v1.Hash       `json:"diffID"`
	Dir    string        `json:"dir,omitempty"`
	From   string        `json:"from,omitempty"` // a file that the store lends: the bytes come from there; none: from the registry
	Keep   string        `json:"keep,omitempty"` // likewise: they go there too; none: nowhere else
}

// reply answers a request: any number of times with Bytes alone, and then once
// with Done and the rest.
type reply struct {
	Bytes  int64      `json:"bytes,omitempty"` // of a layer, so far
	Done   bool       `json:"done,omitempty"`
	Error  *wireError `json:"error,omitempty"`
	Mirror bool       `json:"mirror,omitempty"` // a mirror answered, by the node's login
	Digest *v1.Hash   `json:"digest,omitempty"`
	Raw    []byte     `json:"raw,omitempty"`
	Has    bool       `json:"has,omitempty"`
	Layer  *unpacked  `json:"layer,omitempty"`
	Kept   bool       `json:"kept,omitempty"`   // all its bytes went to layerOrder.Keep
	Opaque []string   `json:"opaque,omitempty"` // directories of the layer that hide lower ones
}

// packet is what goes over the control socket. From a worker: it is ready, or
// asks something. To it: its room is furnished, a call (with its stream), or
// an answer (with a file or connection).
type packet struct {
	Ready bool `json:"ready,omitempty"`
	Call  bool `json:"call,omitempty"`

	Ask     int    `json:"ask,omitempty"` // a number for the answer
	Dial    string `json:"dial,omitempty"`
	Open    string `json:"open,omitempty"`
	Take    string `json:"take,omitempty"`  // what is lent for a layer
	Bytes   int64  `json:"bytes,omitempty"` // room on the disk
	Entries int64  `json:"entries,omitempty"`

	Answer int        `json:"answer,omitempty"`
	Error  *wireError `json:"error,omitempty"`
}

// wireError is an error on its way between the processes.
type wireError struct {
	Kind      Kind   `json:"kind,omitempty"` // of a PullError
	Detail    string `json:"detail,omitempty"`
	Temporary bool   `json:"temporary,omitempty"`
	Cause     string `json:"cause,omitempty"`

	Errno    unix.Errno `json:"errno,omitempty"`
	NoHost   bool       `json:"noHost,omitempty"`
	NoLookup bool       `json:"noLookup,omitempty"`
	Timeout  bool       `json:"timeout,omitempty"`
}

func wireErrorOf(err error) *wireError {
	if err == nil {
		return nil
	}
	w := &wireError{Cause: cut(err.Error())}
	if e, ok := errors.AsType[*PullError](err); ok {
		w.Kind, w.Detail, w.Temporary = e.Kind, cut(e.Detail), e.Temporary
		if e.cause != nil {
			w.Cause = cut(e.cause.Error())
		}
		return w
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		w.NoHost, w.NoLookup = dns.IsNotFound, !dns.IsNotFound
	}
	errors.As(err, &w.Errno)
	w.Timeout = isTimeout(err)
	return w
}

// cut bounds what is told of an error that a stranger's bytes may have made.
func cut(s string) string { return s[:min(len(s), 1<<10)] }

// err makes an error again that is classified as the first was.
func (w *wireError) err() error {
	cause := errors.New(w.Cause)
	switch {
	case w.Kind != "":
		return &PullError{Kind: w.Kind, Detail: w.Detail, Temporary: w.Temporary, cause: cause}
	case w.NoHost, w.NoLookup:
		return &net.DNSError{Err: w.Cause, IsNotFound: w.NoHost, IsTemporary: w.NoLookup}
	case w.Errno != 0:
		return &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", w.Errno)}
	case w.Timeout:
		return &net.OpError{Op: "dial", Err: context.DeadlineExceeded}
	}
	return cause
}
