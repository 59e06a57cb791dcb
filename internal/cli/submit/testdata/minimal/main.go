// Command minimal submits a job with no more than the standard library's HTTP
// client: what a command of Go costs at least.
package main

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
)

func main() {
	socket, file := os.Args[1], os.Args[2]
	job, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	c := &http.Client{Transport: &http.Transport{DialContext: dial}}
	resp, err := c.Post("http://gctld/v1/jobs", "application/json", strings.NewReader(`{"job":`+string(job)+`}`))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := io.Copy(os.Stdout, resp.Body); err != nil {
		log.Fatal(err)
	}
}
