package oci_test

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gbatch/oci/wire"
)

// TestAbstractSockets: a container in the host's network reaches its own
// sockets without a name in the file system, also from a command beside the
// job, and none of the host's.
func TestAbstractSockets(t *testing.T) {
	needContainers(t)
	if version, _, _ := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION); int(version) < 6 {
		t.Skip("SKIPPED, this kernel confines no abstract sockets")
	}
	name := fmt.Sprintf("gbatch-test-%d", os.Getpid())
	l, err := net.Listen("unix", "@"+name)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b := newTrying(t, "listen own-"+name)
	b.req.Network.Host = true
	s := b.start()
	b.await("listening: <nil>")
	for target, want := range map[string]string{name: "operation not permitted", "own-" + name: "dialled: <nil>"} {
		out, _ := execOutput(t, s, wire.ExecRequest{Args: []string{"/test/binary"}, Env: []string{insideEnv + "=dial " + target}})
		if !strings.Contains(out, want) {
			t.Errorf("%s: %q, want %q", target, out, want)
		}
	}
}
