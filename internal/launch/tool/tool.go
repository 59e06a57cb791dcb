package tool

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/pkg/sftp"

	"gbatch/internal/api"
)

// Main is a tool with its arguments, and gives the exit code. known is false for
// a name that is none.
func Main(name string, args []string) (code int, known bool) {
	var err error
	switch api.Tool(name) {
	case api.ToolSFTP:
		err = serveFiles(stdio{})
	case api.ToolConnect:
		err = connect(args)
	default:
		return 0, false
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1, true
	}
	return 0, true
}

// stdio is the client.
type stdio struct{}

func (stdio) Read(p []byte) (int, error)  { return os.Stdin.Read(p) }
func (stdio) Write(p []byte) (int, error) { return os.Stdout.Write(p) }
func (stdio) CloseWrite() error           { return os.Stdout.Close() }
func (stdio) Close() error                { return errors.Join(os.Stdin.Close(), os.Stdout.Close()) }

// serveFiles serves the container's files until the client has gone. Relative
// paths begin in the present directory, which is the job's.
func serveFiles(client io.ReadWriteCloser) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	s, err := sftp.NewServer(client, sftp.WithServerWorkingDirectory(dir), sftp.WithAllocator())
	if err != nil {
		return err
	}
	if err := s.Serve(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return s.Close()
}

// dialTime is how long a connection may take.
const dialTime = 30 * time.Second

// connect joins the client with an address as the container sees it. What it
// sends first is one byte, api.Connected, when the connection is there.
func connect(args []string) error {
	if len(args) != 2 || args[0] != "tcp" && args[0] != "unix" {
		return fmt.Errorf("%q: want tcp and HOST:PORT, or unix and a path", args)
	}
	conn, err := net.DialTimeout(args[0], args[1], dialTime)
	if err != nil {
		return err
	}
	defer conn.Close()
	client := stdio{}
	if _, err := client.Write([]byte{api.Connected}); err != nil {
		return err
	}
	return join(client, conn.(duplex))
}

// duplex is something whose directions end apart.
type duplex interface {
	io.ReadWriter
	CloseWrite() error
}

// join copies both ways until each has ended.
func join(client, conn duplex) error {
	var in, out error
	var both sync.WaitGroup
	both.Go(func() { // ends with the client's input, or when the connection takes no more
		_, in = io.Copy(conn, client)
		_ = conn.CloseWrite() // or it has gone
	})
	_, out = io.Copy(client, conn)
	_ = client.CloseWrite() // or it has gone
	both.Wait()
	return errors.Join(in, out)
}
