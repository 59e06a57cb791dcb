package ssh

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"gbatch/internal/api"
	"gbatch/internal/cli"
)

// FuzzSession has an SSH client ask for anything, one request after the other: what is
// taken in fits a node's bounds and can be written, only sftp is a tool, and nothing is
// asked for anew once a command has begun.
func FuzzSession(f *testing.F) {
	f.Add(asked("env", ssh.Marshal(struct{ A, B string }{"LANG", "C"}), "exec", ssh.Marshal(struct{ C string }{"id; true"})))
	f.Add(asked("env", ssh.Marshal(struct{ A, B string }{"A=B", "x\x00y"}), "subsystem", ssh.Marshal(struct{ C string }{"sftp"}), "shell", nil))
	f.Add(asked("pty-req", ssh.Marshal(struct {
		T          string
		W, H, X, Y uint32
		M          string
	}{"xterm\x00", 1 << 31, 0, 7, 7, "\x00"}), "window-change", ssh.Marshal(struct{ W, H, X, Y uint32 }{1 << 20, 5, 0, 0}), "shell", nil))
	f.Add(asked("signal", ssh.Marshal(struct{ S string }{"KILL"}), "signal", []byte("\xff\xff\xff\xff"), "x11-req", nil, "auth-agent-req@openssh.com", nil))
	f.Add(asked("exec", []byte("\x00\x00\x00\x05a")))
	f.Fuzz(func(t *testing.T, script []byte) {
		var said bytes.Buffer
		se := &session{server: &server{app: &cli.App{Err: &said}}}
		for len(script) > 0 {
			kind, payload, rest := nextAsked(script)
			script = rest
			before := api.JSONFrame(api.FrameStart, se.start)
			ok := se.request(&ssh.Request{Type: kind, Payload: payload})
			after := api.JSONFrame(api.FrameStart, se.start)
			if (se.started || !ok) && !bytes.Equal(before.Data, after.Data) {
				t.Fatalf("%q changed what is begun from %s to %s", kind, before.Data, after.Data)
			}
			if ok && !se.started && runs(kind) {
				se.started = true
				if len(after.Data) > api.MaxFrame {
					t.Fatalf("the start has %d bytes", len(after.Data))
				}
			}
		}
		if len(se.passed) > maxPassed || len(se.start.Env) > maxVariables {
			t.Errorf("%d frames are kept, %d variables", len(se.passed), len(se.start.Env))
		}
		for _, kv := range se.start.Env {
			if strings.Contains(kv, "\x00") || len(kv) > maxVariable+1 || strings.Index(kv, "=") < 1 {
				t.Errorf("a variable is %q", kv)
			}
		}
		if se.start.Tool != "" && se.start.Tool != api.ToolSFTP {
			t.Errorf("the tool %q", se.start.Tool)
		}
	})
}

// asked writes requests, kind and payload by turns, as nextAsked reads them.
func asked(requests ...any) (script []byte) {
	for i := 0; i < len(requests); i += 2 {
		payload, _ := requests[i+1].([]byte)
		script = append(script, byte(len(requests[i].(string))))
		script = append(script, requests[i].(string)...)
		script = binary.BigEndian.AppendUint16(script, uint16(len(payload)))
		script = append(script, payload...)
	}
	return script
}

// nextAsked reads one request; what is too short ends early.
func nextAsked(script []byte) (kind string, payload, rest []byte) {
	take := func(n int) []byte {
		part := script[:min(n, len(script))]
		script = script[len(part):]
		return part
	}
	kind = string(take(int(take(1)[0])))
	var n [2]byte
	copy(n[:], take(2))
	payload = take(int(binary.BigEndian.Uint16(n[:])))
	return kind, payload, script
}

// FuzzForwards reads anything as where a client wants to be connected: it is refused,
// or one address of the job's side.
func FuzzForwards(f *testing.F) {
	f.Add(ssh.Marshal(struct {
		H string
		P uint32
		O string
		Q uint32
	}{"localhost", 8080, "127.0.0.1", 5}))
	f.Add(ssh.Marshal(struct {
		H string
		P uint32
		O string
		Q uint32
	}{"h]:1", 1 << 16, "", 0}))
	f.Add([]byte("\x00\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, payload []byte) {
		host, port, ok := tcpTarget(payload)
		if ok && (port == 0 || strings.ContainsAny(host, "\x00\n")) || !ok && host != "" {
			t.Errorf("%q port %d: %t", host, port, ok)
		}
		if path, ok := unixTarget(payload); ok && (path == "" || strings.Contains(path, "\x00")) {
			t.Errorf("path %q", path)
		}
	})
}

// FuzzHost reads anything as the name of a job: what comes of it is no path.
func FuzzHost(f *testing.F) {
	for _, name := range []string{"12.gbatch", "12_7-1.GBATCH", "12-99999", "../x", "a b", "0f8fad5b-d9cb-469f-a165-70867728950e-2.gbatch"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		h, err := ParseHost(name)
		if err == nil && (h.Job == "" || strings.ContainsAny(h.Job, "/.:@ ") || h.Rank < 0) {
			t.Errorf("%q is %+v", name, h)
		}
	})
}
