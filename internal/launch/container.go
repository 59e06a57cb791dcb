package launch

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Containers is the socket by which a rank has its node make a container for the tasks of
// a step in an image of its own: a line with a Container, answered by lines with a
// ContainerReply. When one says that it is ready the other side is the program that takes
// tasks in there, and is sent connections of srun by lines with a HandOver.
const Containers = Dir + "/containers"

// Container is what a step asks for beside the job's own container.
type Container struct {
	Image    string  `json:"image,omitempty"` // empty: that of an earlier one with the name, or the job's
	Name     string  `json:"name,omitempty"`  // what is written there is kept by it, on each node
	Mounts   []Mount `json:"mounts,omitempty"`
	ReadOnly bool    `json:"readOnly,omitempty"` // its root file system
}

// Mount shows what is at a path in the job's container.
type Mount struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"readOnly,omitempty"`
}

// ContainerReply is a line to the rank.
type ContainerReply struct {
	Ready bool   `json:"ready,omitempty"`
	Error string `json:"error,omitempty"` // why not; it is no use to ask again
	Over  int    `json:"over,omitempty"`  // the connection with this number has ended
}

// HandOver is a connection of srun's, whose file comes with the last of its lines, and
// what was read of it before.
type HandOver struct {
	ID   int    `json:"id"`
	Read []byte `json:"read,omitempty"`
	Last bool   `json:"last,omitempty"`
}

// ImageName is an image as job files name it: REGISTRY#IMAGE is how enroot does.
func ImageName(s string) string {
	s = strings.TrimPrefix(s, "docker://")
	if i := strings.IndexByte(s, '#'); i > 0 {
		return s[:i] + "/" + s[i+1:]
	}
	return s
}

// WithoutLogin is an image's name without the user and password of a registry that
// somebody has written in front of it, as in USER:PASSWORD@REGISTRY/IMAGE. The digest
// behind an @ stays.
func WithoutLogin(image string) string {
	name, digest := image, ""
	if i := strings.LastIndexByte(image, '@'); i >= 0 && isDigest.MatchString(image[i+1:]) {
		name, digest = image[:i], image[i:]
	}
	return name[strings.LastIndexByte(name, '@')+1:] + digest
}

var isDigest = regexp.MustCompile(`^[a-z0-9+._-]+:[0-9a-fA-F]{32,}$`)

// Resume is a connection that was accepted by another process, which has read some of it.
func Resume(c net.Conn, read []byte) *Conn {
	return &Conn{Conn: c, in: bufio.NewReaderSize(io.MultiReader(bytes.NewReader(read), c), 64<<10)}
}

// Watched is a connection of which frames are read that are for somebody else, who gets
// all of it.
type Watched struct {
	conn *Conn
	read bytes.Buffer
	done sync.WaitGroup
}

// Watch reads frames until it is stopped, or what looks at them says that it has seen
// enough. An error comes last.
func (c *Conn) Watch(look func(Frame, error)) *Watched {
	w := &Watched{conn: c}
	all := io.MultiReader(bytes.NewReader(bytes.Clone(c.Buffered())), c.Conn)
	c.in = bufio.NewReaderSize(io.TeeReader(io.LimitReader(all, maxWatched), &w.read), 64<<10)
	w.done.Go(func() { // ends by Stop, or with the connection
		for {
			f, err := c.Next()
			look(f, err)
			if err != nil {
				return
			}
		}
	})
	return w
}

// maxWatched bounds what is read ahead: srun sends a few frames of input at most before
// somebody takes them.
const maxWatched = 16 << 20

// Stop ends the reading, and returns all that was read.
func (w *Watched) Stop() []byte {
	_ = w.conn.SetReadDeadline(time.Unix(1, 0))
	w.done.Wait()
	_ = w.conn.SetReadDeadline(time.Time{})
	return w.read.Bytes()
}

// Buffered is what was read of a connection and not taken.
func (c *Conn) Buffered() []byte {
	b, _ := c.in.Peek(c.in.Buffered())
	return b
}

// Bytes is a frame as it was sent.
func (f Frame) Bytes() []byte { return append(head(f.Kind, f.Task, len(f.Body)), f.Body...) }
