package streams

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"gbatch/internal/api"
	"gbatch/oci"
)

// toolTime bounds how long a tool in a container may take to connect there.
const toolTime = 20 * time.Second

// insideConn is a connection that a tool in the container has.
type insideConn struct{ *execution }

// dialInside connects from inside the container.
func (n *Streams) dialInside(container *oci.Container, to netip.AddrPort) (portConn, error) {
	e := &execution{tools: n.node.Tools()}
	if err := e.start(container, api.ExecStart{Tool: api.ToolConnect, Args: []string{"tcp", to.String()}}); err != nil {
		return nil, err
	}
	c := insideConn{e}
	if err := c.connected(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// connected waits until the tool says that it is.
func (c insideConn) connected() error {
	out := c.outputs[0].file
	if err := out.SetReadDeadline(time.Now().Add(toolTime)); err != nil {
		return err
	}
	var first [1]byte
	if _, err := io.ReadFull(out, first[:]); err == nil && first[0] == api.Connected {
		return out.SetReadDeadline(time.Time{})
	}
	why := c.outputs[1].file
	_ = why.SetReadDeadline(time.Now().Add(time.Second)) // for what it has written before it ended
	text, _ := io.ReadAll(io.LimitReader(why, 4<<10))
	switch text := string(text); {
	case strings.Contains(text, syscall.ECONNREFUSED.Error()):
		return syscall.ECONNREFUSED
	case strings.Contains(text, syscall.EPERM.Error()):
		return errors.New("what listens there is not the job's")
	}
	return fmt.Errorf("the tool in the container does not connect: %.200q", text)
}

func (c insideConn) Read(p []byte) (int, error)  { return c.outputs[0].file.Read(p) }
func (c insideConn) Write(p []byte) (int, error) { return c.in.Write(p) }
func (c insideConn) CloseWrite() error           { return c.in.Close() }

// Close ends the tool.
func (c insideConn) Close() error {
	err := c.proc.Close()
	c.in.Close()
	for _, o := range c.outputs {
		o.file.Close()
	}
	return err
}
