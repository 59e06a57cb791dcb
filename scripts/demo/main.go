// Demo is the part of the demo that is not gbatch: it makes a small container
// image out of this machine's busybox and serves it from a registry in memory,
// on loopback, until it is told to stop. It prints the image's name once a
// node can pull it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/google/go-containerregistry/pkg/registry"

	"gbatch/oci/image/imagetest"
	"gbatch/oci/ref"
)

const image = "demo/hello:latest"

func main() {
	listen := flag.String("listen", "127.0.0.1:5055", "where to serve; another port is taken if this one is in use")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, *listen); err != nil {
		fmt.Fprintln(os.Stderr, "demo registry:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, listen string) error {
	ln, err := net.Listen("tcp", listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		ln, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }() // run waits for it
	if err := publish(ln.Addr().String() + "/" + image); err != nil {
		return errors.Join(err, srv.Close())
	}
	<-ctx.Done()
	err = srv.Close()
	if e := <-served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}

func publish(name string) error {
	r, _, err := ref.Parse(name)
	if err != nil {
		return err
	}
	img, err := imagetest.Build(imagetest.Options{Busybox: true, Config: v1.Config{
		Cmd: []string{"echo", "This image does nothing by itself: give it a command."},
		Env: []string{"PATH=/usr/bin:/bin"},
	}})
	if err != nil {
		return err
	}
	if _, err := imagetest.Push(r, img, nil); err != nil {
		return err
	}
	_, err = fmt.Println(name)
	return err
}
