package exec

import (
	"bufio"
	"context"
	"net"
	"regexp"
	"strconv"
	"sync"

	"gbatch/internal/client"
)

// printed finds the addresses that servers of notebooks print of themselves: by a
// name of the job's, which leads nowhere from here. Those without a token or a path
// would say no more than that the port is forwarded.
var printed = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(https?)://(?:[A-Za-z0-9.-]{1,253}|\[[0-9a-fA-F:.]{2,45}\]):([0-9]{1,5})(/[!-~]+)`)
})

// hereURL is the address in a line of the job's output, as it is from here; empty:
// the line has none of a forwarded port. here are the addresses that are listened
// at, by the job's port.
func hereURL(line string, here map[uint16]net.Addr) string {
	for _, m := range printed().FindAllStringSubmatch(line, -1) {
		port, err := strconv.ParseUint(m[2], 10, 16)
		if err != nil || here[uint16(port)] == nil {
			continue
		}
		host, local, err := net.SplitHostPort(here[uint16(port)].String())
		if err != nil {
			continue
		}
		if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() || ip.IsLoopback() {
			host = "localhost"
		}
		return m[1] + "://" + net.JoinHostPort(host, local) + m[3]
	}
	return ""
}

// Bounds of what is looked at, and said, of a job's output.
const (
	urlTail = 1000 // lines
	maxURLs = 16
)

// sayURLs says the addresses that the job prints of servers at forwarded ports, as
// they are from here, each once, until its output or ctx ends.
func (t *tunnel) sayURLs(ctx context.Context, here map[uint16]net.Addr) {
	log, err := t.app.Client.Log(ctx, t.id, client.LogOptions{Tail: urlTail, Rank: t.rank, Follow: true})
	if err != nil {
		return // there is none, or who may enter may not read it
	}
	defer log.Close()
	defer context.AfterFunc(ctx, func() { log.Close() })()
	said := map[string]bool{}
	for lines := bufio.NewReaderSize(log, 16<<10); len(said) < maxURLs; {
		line, _, err := lines.ReadLine() // of a longer one, each part
		if err != nil {
			return
		}
		if url := hereURL(string(line), here); url != "" && !said[url] {
			said[url] = true
			t.app.Say("the job's server: %s", url)
		}
	}
}
