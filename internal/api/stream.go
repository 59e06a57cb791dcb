package api

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// Paths of the two-way streams. A client opens a WebSocket there; the
// controller asks the rank's node to open one at PathStream and copies
// messages between the two without looking into them.
const (
	PathJobExec    = "/v1/jobs/{id}/exec"         // GET, WebSocket; ?rank=
	PathJobForward = "/v1/jobs/{id}/forward"      // GET, WebSocket; ?rank=
	PathJobAttach  = "/v1/jobs/{id}/attach"       // GET, WebSocket; ?rank=
	PathJobSave    = "/v1/jobs/{id}/save"         // GET, WebSocket; ?rank=
	PathJobPort    = "/v1/jobs/{id}/ports/{port}" // POST: for a browser
)

// PathJobStream are the paths of a client's streams, by their kind.
var PathJobStream = map[string]string{StreamExec: PathJobExec, StreamForward: PathJobForward, StreamAttach: PathJobAttach, StreamSave: PathJobSave}

// The kinds of a StreamRequest.
const (
	StreamLog     = "log"
	StreamExec    = "exec"
	StreamForward = "forward"
	StreamSave    = "save"   // what the rank's container has written, as a layer
	StreamAttach  = "attach" // to the terminal of the rank's own program
)

// Frame is one message of a two-way stream, binary on the wire: a byte for the
// type, then the data.
//
// The client begins with FrameStart. Then it sends FrameInput, FrameEndInput,
// FrameResize and FrameSignal, and the node FrameOutput, FrameErrOutput, FrameEndOutput
// and FrameWindow. The node's last frame is FrameExit or FrameError; it is the
// client that closes then, when it has read all. A client that closes before
// has gone, and the node ends what it had started: of StreamAttach nothing,
// the program goes on and takes the next client. A node that closes has
// gone: the controller then sends the client a FrameError.
//
// The client may send StreamWindow bytes of input, and later as many more as
// FrameWindow tells: what was sent before has been taken by then. So the node
// always reads, and notices at once that a client has gone whose program does
// not take its input. Output is held back by the connection itself.
type Frame struct {
	Type FrameType
	Data []byte
}

// FrameType says what a frame holds.
type FrameType byte

// The types of frames.
const (
	FrameStart     FrameType = 1  // client: ExecStart, ForwardStart, AttachStart or SaveStart as JSON; node: SaveBegun
	FrameInput     FrameType = 2  // client: bytes for standard input, or for the port
	FrameEndInput  FrameType = 3  // client: there is no more; no data
	FrameResize    FrameType = 4  // client: the terminal's size, see ResizeFrame
	FrameOutput    FrameType = 5  // node: bytes of standard output, the terminal or the port
	FrameErrOutput FrameType = 6  // node: bytes of standard error
	FrameEndOutput FrameType = 7  // node: the port, or standard output, sends no more, but the other way is open; no data
	FrameWindow    FrameType = 8  // node: so many bytes of input more may come, see CountFrame
	FrameExit      FrameType = 9  // node: the command ended with this code, see CountFrame
	FrameError     FrameType = 10 // node or controller: StreamFailure as JSON
	FrameSignal    FrameType = 11 // client: the command shall get this signal, see CountFrame
)

// Bounds of two-way streams, in bytes.
const (
	StreamWindow = 256 << 10 // input on its way to a program that does not take it
	MaxFrame     = 1 << 20   // of a whole message; only FrameStart comes near it
	FrameChunk   = 32 << 10  // data that one message of input or output holds at most
)

// ExecStart says what to run in the container.
type ExecStart struct {
	Args    []string `json:"args,omitempty"` // none: a shell, /bin/bash if the image has it
	Env     []string `json:"env,omitempty"`  // K=V, over the container's
	WorkDir string   `json:"workDir,omitempty"`
	User    string   `json:"user,omitempty"` // name or id; empty: the container's
	// Container is the name of a program that runs beside the job's own, whose container it
	// is; empty: the job's own.
	Container string `json:"container,omitempty"`

	Terminal bool   `json:"terminal,omitempty"`
	Width    uint16 `json:"width,omitempty"` // of the terminal; 0: unknown
	Height   uint16 `json:"height,omitempty"`
	Tool     Tool   `json:"tool,omitempty"` // in place of a command of the image; Args are the tool's
}

// Tool is something that a node can run in any container, whatever its image has.
type Tool string

// The tools. Both speak by standard input and output, and take no terminal.
const (
	ToolSFTP    Tool = "sftp"    // files, by SFTP version 3; no arguments
	ToolConnect Tool = "connect" // a connection made from inside: "tcp" and HOST:PORT, or "unix" and a path
)

// Connected is the first byte that ToolConnect sends: it is connected. Without it,
// standard error says why it is not.
const Connected byte = '+'

// ForwardStart says which port to connect to.
type ForwardStart struct {
	Port uint16 `json:"port"` // TCP, on the loopback interface that the container sees
}

// AttachStart is how a client takes the terminal of a rank's own program. It
// sees what was written last, then all that is written. FrameEndInput ends
// nothing: the next client types on.
type AttachStart struct {
	Width  uint16 `json:"width,omitempty"` // of the client's terminal; 0: leave the size as it is
	Height uint16 `json:"height,omitempty"`
	All    bool   `json:"all,omitempty"` // from the first byte that was written
}

// SaveStart asks for what a container has written. The node answers with a
// FrameStart of SaveBegun, a tar archive as FrameOutput, and FrameExit 0 when that
// is whole.
type SaveStart struct{}

// SaveBegun says of what the layer is.
type SaveBegun struct {
	Platform string `json:"platform"` // os/architecture
}

// StreamFailure is why a stream ended without a result. It is an error.
type StreamFailure struct {
	Message string `json:"message"`
	// Code is what shells exit with for it: 127 for a command that is not there,
	// 126 for one that cannot be executed, 125 for all else.
	Code int `json:"code"`
}

func (f *StreamFailure) Error() string { return f.Message }

// JSONFrame is a frame that holds v as JSON. v is one of this file's types.
func JSONFrame(t FrameType, v any) Frame {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode a frame's %T: %v", v, err))
	}
	return Frame{t, data}
}

// FailureFrame is a FrameError; code is as in StreamFailure.
func FailureFrame(code int, message string) Frame {
	return JSONFrame(FrameError, StreamFailure{Message: message, Code: code})
}

// ResizeFrame tells a terminal's new size in columns and lines.
func ResizeFrame(width, height uint16) Frame {
	return Frame{FrameResize, binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, width), height)}
}

// CountFrame holds a number from 0 to 2^31-1: bytes for FrameWindow, the exit
// code for FrameExit, the signal's number for FrameSignal.
func CountFrame(t FrameType, n int) Frame {
	return Frame{t, binary.BigEndian.AppendUint32(nil, uint32(n))}
}

// Size is the size of a FrameResize.
func (f Frame) Size() (width, height uint16) {
	return binary.BigEndian.Uint16(f.Data), binary.BigEndian.Uint16(f.Data[2:])
}

// Count is the number of a FrameWindow, FrameExit or FrameSignal.
func (f Frame) Count() int { return int(binary.BigEndian.Uint32(f.Data)) }

// Failure is what a FrameError says.
func (f Frame) Failure() *StreamFailure {
	out := new(StreamFailure)
	if err := json.Unmarshal(f.Data, out); err != nil || out.Message == "" {
		out.Message = "the stream ended for an unknown reason"
	}
	if out.Code <= 0 || out.Code > 255 {
		out.Code = 125
	}
	return out
}

// SaveBegun is what a node's FrameStart says.
func (f Frame) SaveBegun() (out SaveBegun, err error) {
	err = json.Unmarshal(f.Data, &out)
	return out, err
}

// Append appends the frame's message to b.
func (f Frame) Append(b []byte) []byte { return append(append(b, byte(f.Type)), f.Data...) }

// ParseFrame reads a message. What it returns has the data that its type
// demands, and shares b. Types that are not known are returned as they are:
// a receiver passes over them.
func ParseFrame(b []byte) (Frame, error) {
	if len(b) == 0 {
		return Frame{}, errors.New("a stream's message is empty")
	}
	f := Frame{FrameType(b[0]), b[1:]}
	ok := true
	switch f.Type {
	case FrameEndInput, FrameEndOutput:
		ok = len(f.Data) == 0
	case FrameResize:
		ok = len(f.Data) == 4
	case FrameWindow, FrameExit, FrameSignal:
		ok = len(f.Data) == 4 && binary.BigEndian.Uint32(f.Data) <= math.MaxInt32
	case FrameInput, FrameOutput, FrameErrOutput:
		ok = len(f.Data) <= FrameChunk
	}
	if !ok {
		return Frame{}, fmt.Errorf("a stream's message of type %d has %d bytes of wrong data", f.Type, len(f.Data))
	}
	return f, nil
}
