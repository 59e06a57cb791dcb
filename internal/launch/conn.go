package launch

import (
	"bufio"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Kind says what a frame is.
type Kind byte

// The kinds of frames. Each connection begins with one of the first six, from
// srun or sattach; what is behind each is its message.
const (
	KindReserve Kind = 'r' // Request: to the first rank
	KindStart   Kind = 's' // Start: to each rank of a step
	KindAttach  Kind = 'a' // Attach: from sattach to each rank of the job; answered by KindGrant where the step runs
	KindStartIn Kind = 'b' // Start in a container of the step's: to each rank of it
	KindBeside  Kind = 'f' // Start where another step's tasks are: to one rank
	KindHold    Kind = 'h' // to the first rank: it stays for as long as the connection; ended by Done

	// Of a reservation.
	KindWait   Kind = 'w' // to srun: text, why it waits
	KindGrant  Kind = 'g' // to srun: Layout
	KindCancel Kind = 'c' // to srun: somebody cancels the step
	KindDone   Kind = 'd' // from srun: Done
	KindNoted  Kind = 'n' // to srun: the end is recorded

	// Of a rank of a step.
	KindInput    Kind = 'i' // from srun: bytes for a task
	KindInputEnd Kind = 'j'
	KindTaken    Kind = 't' // to srun: one KindInput was taken
	KindSignal   Kind = 'k' // from srun: Signal
	KindSize     Kind = 'z' // from srun: Size of the terminal
	KindOutput   Kind = 'o' // to srun: bytes of a task
	KindErrors   Kind = 'e'
	KindExit     Kind = 'x' // to srun: Exit
	KindOver     Kind = 'v' // to srun: all tasks of the rank have ended, and all output was sent
	KindPMI      Kind = 'p' // both ways: see pmi.go
	KindPMIx     Kind = 'q' // both ways: see pmix.go

	KindError Kind = '!' // to srun: text; the connection ends
)

// Frame is one message. Task is the number of the task in the step that it is
// about.
type Frame struct {
	Kind Kind
	Task uint32
	Body []byte
}

// maxBody bounds what is behind a frame; ChunkBytes is what bytes of tasks are cut
// into.
const (
	maxBody    = 8 << 20
	ChunkBytes = 32 << 10
)

// Conn is a connection on which both sides have shown that they know the job's
// secret. Send may be called from anywhere, Next by one goroutine.
type Conn struct {
	net.Conn
	in *bufio.Reader

	mu sync.Mutex // guards writes
}

// helloTime bounds how long the other side may take to show who it is.
const helloTime = 10 * time.Second

// Dial reaches a rank.
func (i *Info) Dial(rank int, within time.Duration) (*Conn, error) {
	c, err := net.DialTimeout("tcp", i.at(rank), within)
	if err != nil {
		return nil, err
	}
	return hello(c, i.Secret, "srun", "rank")
}

// Accept takes a connection in.
func (i *Info) Accept(c net.Conn) (*Conn, error) { return hello(c, i.Secret, "rank", "srun") }

// hello proves to each side that the other knows the secret, which is not sent:
// each signs the other's challenge, with the part that it plays.
func hello(c net.Conn, secret, me, you string) (*Conn, error) {
	_ = c.SetDeadline(time.Now().Add(helloTime))
	mine, theirs := make([]byte, 32), make([]byte, 32)
	_, _ = rand.Read(mine) // never fails
	_, err := c.Write(mine)
	if err == nil {
		_, err = io.ReadFull(c, theirs)
	}
	if err == nil {
		_, err = c.Write(sign(secret, me, theirs, mine))
	}
	proof := make([]byte, sha256.Size)
	if err == nil {
		_, err = io.ReadFull(c, proof)
	}
	if err == nil && !hmac.Equal(proof, sign(secret, you, mine, theirs)) {
		err = errors.New("the other side is not of this job")
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("meet %s: %w", c.RemoteAddr(), err)
	}
	_ = c.SetDeadline(time.Time{})
	return &Conn{Conn: c, in: bufio.NewReaderSize(c, 64<<10)}, nil
}

func sign(secret, who string, challenge, own []byte) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(who))
	h.Write(challenge)
	h.Write(own)
	return h.Sum(nil)
}

// Encode makes the body of a frame. Message is bytes, text, or a value that is
// written as JSON.
func Encode(message any) ([]byte, error) {
	switch m := message.(type) {
	case nil:
		return nil, nil
	case []byte:
		return m, nil
	case string:
		return []byte(m), nil
	}
	return json.Marshal(message)
}

// Send writes a frame with a message: see [Encode].
func (c *Conn) Send(kind Kind, task int, message any) error {
	body, err := Encode(message)
	if err != nil {
		return err
	}
	if len(body) > maxBody {
		return fmt.Errorf("a message of %d bytes is more than %d", len(body), maxBody)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err = c.Write(append(head(kind, uint32(task), len(body)), body...))
	return err
}

// head is what is in front of a frame's body.
func head(kind Kind, task uint32, body int) []byte {
	head := make([]byte, 9, 9+body)
	head[0] = byte(kind)
	binary.BigEndian.PutUint32(head[1:], task)
	binary.BigEndian.PutUint32(head[5:], uint32(body))
	return head
}

// Next is the next frame.
func (c *Conn) Next() (Frame, error) {
	var head [9]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return Frame{}, err
	}
	f := Frame{Kind: Kind(head[0]), Task: binary.BigEndian.Uint32(head[1:])}
	n := binary.BigEndian.Uint32(head[5:])
	if n > maxBody {
		return Frame{}, fmt.Errorf("a message of %d bytes is more than %d", n, maxBody)
	}
	f.Body = make([]byte, n)
	_, err := io.ReadFull(c.in, f.Body)
	return f, err
}

// Read reads a frame's message.
func (f Frame) Read(to any) error {
	if err := json.Unmarshal(f.Body, to); err != nil {
		return fmt.Errorf("read message %q: %w", f.Kind, err)
	}
	return nil
}
