package oci_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"gbatch/oci"
	"gbatch/oci/stdio"
)

// terminalBox is a container whose first process has a terminal.
func terminalBox(t *testing.T, script string) *box {
	b := newBox(t, script)
	b.req.Terminal = true
	return b
}

// TestTerminal: the first process has a terminal that answers to size and
// typing, from several clients and after they have gone, and the log has all
// of its output.
func TestTerminal(t *testing.T) {
	b := terminalBox(t, "tty; echo $TERM; stty size; echo ready; read x; echo got $x; stty size; read y; echo got $y; exit 5")
	s := b.start()
	b.await("ready")
	first, err := s.Terminal()
	if err != nil {
		t.Fatal(err)
	}
	if err := stdio.Resize(first, 100, 40); err != nil {
		t.Fatal(err)
	}
	io.WriteString(first, "one\n")
	b.await("40 100")
	first.Close()
	second, err := s.Terminal()
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	io.WriteString(second, "two\n")
	exit := b.exit()
	want := "/dev/pts/0\r\nxterm\r\n24 80\r\nready\r\none\r\ngot one\r\n40 100\r\ntwo\r\ngot two\r\n"
	if log := b.log(); log != want || exit.Code != 5 || exit.LogBytes != int64(len(want)) {
		t.Errorf("exit %+v, log %q, want %q", exit, log, want)
	}
	if _, err := s.Terminal(); err == nil {
		t.Error("a terminal of a container that has ended")
	}
}

// TestTerminalInterrupt: keys act on what runs in the foreground, and an end
// of input ends a shell.
func TestTerminalInterrupt(t *testing.T) {
	b := terminalBox(t, "exec sh -i")
	s := b.start()
	b.await("# ")
	f, err := s.Terminal()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	io.WriteString(f, "echo $((40+2)); sleep 1000\n")
	b.await("42\r")
	// One that comes before the shell's child is sleep is lost, though it is shown.
	poll(t, "the command to be interrupted", func() bool {
		io.WriteString(f, "\x03echo $((50+2))\n")
		return strings.Contains(b.log(), "^C") && strings.Contains(b.log(), "52\r")
	})
	io.WriteString(f, "\x04")
	if exit := b.exit(); exit.Signal != 0 {
		t.Errorf("exit %+v", exit)
	}
}

// TestTerminalNobody: output that nobody looks at is kept, and holds nothing up.
func TestTerminalNobody(t *testing.T) {
	b := terminalBox(t, "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo line $i; done")
	exit, log := b.run()
	if exit.Code != 0 || strings.Count(log, "\r\n") != 20000 || !strings.HasSuffix(log, "line 20000\r\n") {
		t.Errorf("exit %+v, %d lines", exit, strings.Count(log, "\r\n"))
	}
}

// TestTerminalUser: the terminal belongs to the container's user, who may open it anew.
func TestTerminalUser(t *testing.T) {
	b := terminalBox(t, "echo through >/dev/tty && echo also >/dev/stdout && id -un")
	b.req.User = "bob"
	if exit, log := b.run(); exit.Code != 0 || log != "through\r\nalso\r\nbob\r\n" {
		t.Errorf("exit %+v, log %q", exit, log)
	}
}

func TestNoTerminal(t *testing.T) {
	if _, err := execBox(t, "").Terminal(); !errors.Is(err, oci.ErrNoTerminal) {
		t.Errorf("a container without a terminal: %v", err)
	}
}
