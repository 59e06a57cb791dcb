package userns

// #include <stdlib.h>
// #include "clone.h"
import "C"

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"unsafe"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// Namespaces are a user namespace and what belongs to it.
type Namespaces struct {
	User *os.File
	Net  *os.File // nil if none was asked for
}

// New makes a user namespace with a map, and if net is set a network namespace
// that belongs to it: root inside may do there what root may. The namespaces
// belong to the user who is root inside, so that what the kernel counts for
// each user (watches, queues, pending signals) is counted for that one.
func New(m Map, net bool) (Namespaces, error) {
	if m.IsZero() {
		return Namespaces{}, errors.New("make user namespace: there is no map")
	}
	owner, _, ok := m.Host(0, 0)
	if !ok {
		return Namespaces{}, errors.New("make user namespace: the map has no root")
	}
	uids, gids := C.CString(lines(m.UIDs)), C.CString(lines(m.GIDs))
	defer C.free(unsafe.Pointer(uids))
	defer C.free(unsafe.Pointer(gids))
	var userFD, netFD, code C.int
	netAt := &netFD
	if !net {
		netAt = nil
	}
	if what := C.gbatch_namespaces(C.uint(owner), uids, gids, &userFD, netAt, &code); what != nil {
		return Namespaces{}, fmt.Errorf("%s: %w", C.GoString(what), syscall.Errno(code))
	}
	out := Namespaces{User: os.NewFile(uintptr(userFD), "user namespace")}
	if net {
		out.Net = os.NewFile(uintptr(netFD), "network namespace")
	}
	return out, nil
}

// Close lets go of them. They live on while somebody else holds or uses them.
func (n Namespaces) Close() {
	n.User.Close()
	n.Net.Close()
}

// lines is a map as the kernel reads it.
func lines(extents []specs.LinuxIDMapping) string {
	var b strings.Builder
	for _, e := range extents {
		fmt.Fprintf(&b, "%d %d %d\n", e.ContainerID, e.HostID, e.Size)
	}
	return b.String()
}
