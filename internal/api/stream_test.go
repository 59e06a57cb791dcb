package api

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFrames(t *testing.T) {
	tests := map[string]struct {
		frame Frame
		wire  string
		read  func(Frame) any
		want  any
	}{
		"input":      {frame: Frame{FrameInput, []byte("ab\x00")}, wire: "\x02ab\x00"},
		"empty":      {frame: Frame{FrameOutput, []byte{}}, wire: "\x05"},
		"end_input":  {frame: Frame{FrameEndInput, []byte{}}, wire: "\x03"},
		"end_output": {frame: Frame{FrameEndOutput, []byte{}}, wire: "\x07"},
		"resize": {frame: ResizeFrame(300, 40), wire: "\x04\x01\x2c\x00\x28",
			read: func(f Frame) any { w, h := f.Size(); return []uint16{w, h} }, want: []uint16{300, 40}},
		"window": {frame: CountFrame(FrameWindow, 65536), wire: "\x08\x00\x01\x00\x00", read: func(f Frame) any { return f.Count() }, want: 65536},
		"exit":   {frame: CountFrame(FrameExit, 137), wire: "\x09\x00\x00\x00\x89", read: func(f Frame) any { return f.Count() }, want: 137},
		"signal": {frame: CountFrame(FrameSignal, 15), wire: "\x0b\x00\x00\x00\x0f", read: func(f Frame) any { return f.Count() }, want: 15},
		"error": {frame: FailureFrame(127, "no ls"), wire: "\x0a" + `{"message":"no ls","code":127}`,
			read: func(f Frame) any { return *f.Failure() }, want: StreamFailure{Message: "no ls", Code: 127}},
		"start": {frame: JSONFrame(FrameStart, ForwardStart{Port: 80}), wire: "\x01" + `{"port":80}`},
		"later": {frame: Frame{99, []byte("x")}, wire: "cx"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			wire := tc.frame.Append(nil)
			if diff := cmp.Diff(tc.wire, string(wire)); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
			f, err := ParseFrame(wire)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.frame, f); diff != "" {
				t.Errorf("frame (-want +got):\n%s", diff)
			}
			if tc.read != nil {
				if diff := cmp.Diff(tc.want, tc.read(f)); diff != "" {
					t.Errorf("value (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestBadFrames(t *testing.T) {
	tests := map[string]string{
		"nothing":        "",
		"end_with_data":  "\x03x",
		"short_resize":   "\x04\x00\x01",
		"long_resize":    "\x04\x00\x01\x00\x01\x00",
		"short_exit":     "\x09\x01",
		"negative_count": "\x08\xff\xff\xff\xff",
		"long_input":     "\x02" + strings.Repeat("x", FrameChunk+1),
	}
	for name, wire := range tests {
		t.Run(name, func(t *testing.T) {
			if f, err := ParseFrame([]byte(wire)); err == nil {
				t.Errorf("taken: %+v", f)
			}
		})
	}
}

// A failure that makes no sense is a failure all the same.
func TestOddFailures(t *testing.T) {
	for _, data := range []string{"", "{", `{"code":-4}`, `{"code":1000}`} {
		got := Frame{FrameError, []byte(data)}.Failure()
		if got.Code != 125 || got.Message == "" {
			t.Errorf("%q: %+v", data, got)
		}
	}
}

// FuzzParseFrame: whatever comes, a frame that is taken can be read and is
// written as it was.
func FuzzParseFrame(f *testing.F) {
	for _, s := range []string{"", "\x01{}", "\x02abc", "\x04\x00\x50\x00\x18", "\x09\x00\x00\x00\x01", "\x0a{\"message\":\"m\",\"code\":9}", "\xff"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, err := ParseFrame(b)
		if err != nil {
			return
		}
		switch frame.Type {
		case FrameResize:
			frame.Size()
		case FrameWindow, FrameExit:
			if n := frame.Count(); n < 0 {
				t.Errorf("count %d", n)
			}
		case FrameError:
			if frame.Failure().Message == "" {
				t.Error("a failure without a message")
			}
		}
		if diff := cmp.Diff(b, frame.Append(nil)); diff != "" {
			t.Errorf("written (-want +got):\n%s", diff)
		}
	})
}
