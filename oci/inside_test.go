package oci_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gbatch/oci/draft"
)

// insideEnv makes the test binary, in a container, a program that tries what
// the image's cannot: "listen NAME" and "dial NAME" use an abstract socket,
// "watch" takes all watches that there are.
const insideEnv = "GBATCH_TEST_INSIDE"

func insideMain(what string) {
	verb, name, _ := strings.Cut(what, " ")
	switch verb {
	case "dial":
		_, err := net.Dial("unix", "@"+name)
		fmt.Println("dialled:", err)
	case "listen":
		l, err := net.Listen("unix", "@"+name)
		fmt.Println("listening:", err)
		for err == nil {
			_, err = l.Accept()
		}
	case "watch":
		var err error
		for err == nil {
			_, err = unix.InotifyInit1(0)
		}
		fmt.Println("watching:", err)
		select {}
	}
}

// newTrying describes a container that runs the test binary.
func newTrying(t *testing.T, what string) *box {
	t.Helper()
	b := newMapped(t, "exec /test/binary")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b.req.Limits.MemoryBytes = 256 << 20
	b.req.Env = []string{insideEnv + "=" + what}
	b.req.Mounts = []draft.Mount{{Source: program, Target: "/test/binary"}}
	for _, dir := range []string{"/usr", "/lib", "/lib64"} { // what the binary is linked to
		if source, err := filepath.EvalSymlinks(dir); err == nil {
			b.req.Mounts = append(b.req.Mounts, draft.Mount{Source: source, Target: dir, ReadOnly: true})
		}
	}
	return b
}
