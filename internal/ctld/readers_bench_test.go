package ctld

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
)

// pageReaders is what another process does to a controller: so many open pages, and so many who listen to one job each.
type pageReaders struct {
	Pages, Listeners int
	From             int // the number of the first job that is listened to
	Address          string
	Tokens           []string
}

const (
	readersVariable = "GBATCH_PAGE_READERS"
	readersReady    = "all listen"
	readersUsers    = 20
	readersCome     = 64 // at a time: more that have not said who they are would be refused at one address
	pagePoll        = 30 * time.Second
)

// startReaders begins a process of readers, of 20 users, and waits until all of them listen.
func (s *testSite) startReaders(b *testing.B, r pageReaders) (end func()) {
	b.Helper()
	r.Address = s.remote()
	for i := range readersUsers {
		t, err := s.CreateToken(b.Context(), api.TokenRequest{Use: api.TokenUser, User: fmt.Sprintf("user%d", i)})
		if err != nil {
			b.Fatal(err)
		}
		r.Tokens = append(r.Tokens, t.Secret)
	}
	text, err := json.Marshal(r)
	if err != nil {
		b.Fatal(err)
	}
	child := exec.Command(os.Args[0], "-test.run=^TestPageReaders$")
	child.Env = append(os.Environ(), readersVariable+"="+string(text))
	child.Stderr = os.Stderr
	told, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	line := bufio.NewScanner(told)
	if !line.Scan() || line.Text() != readersReady {
		b.Fatal("the readers have ended, and said why: ", child.Wait())
	}
	gone := make(chan struct{})
	go func() { line.Scan(); close(gone) }() // ends with the process
	return sync.OnceFunc(func() {
		select {
		case <-gone:
			b.Error("the readers have ended, and said why")
		default:
		}
		_, _ = child.Process.Kill(), child.Wait() // or it has ended
	})
}

// broken ends the readers: what is measured would be another thing with fewer of them.
func broken(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// TestPageReaders is the other side of BenchmarkOpenPages and BenchmarkWatchers.
func TestPageReaders(t *testing.T) {
	text := os.Getenv(readersVariable)
	if text == "" {
		t.Skip("SKIPPED: the other side of benchmarks")
	}
	var are pageReaders
	if err := json.Unmarshal([]byte(text), &are); err != nil {
		t.Fatal(err)
	}
	base, _, _ := strings.Cut(are.Address, "#")
	coming := make(chan struct{}, readersCome)
	var listening sync.WaitGroup
	come := func() (ready func()) {
		coming <- struct{}{}
		listening.Add(1)
		return sync.OnceFunc(func() { <-coming; listening.Done() })
	}
	for i := range are.Pages {
		r := &reader{base: base, token: are.Tokens[i%readersUsers], ready: come(), hc: &http.Client{
			Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		}}
		if i%2 == 1 {
			r.user = fmt.Sprintf("user%d", i%readersUsers)
		}
		go r.run() // ended with the process
	}
	for i := range are.Listeners {
		ready := come()
		go func() { // ended with the process
			c := &client.Client{Address: are.Address, Token: are.Tokens[i%readersUsers]}
			for _, err := range c.Events(context.Background(), client.EventFilter{Jobs: []string{fmt.Sprint(are.From + i)}}) {
				if err != nil {
					broken(err)
				}
				ready()
			}
		}()
	}
	listening.Wait()
	fmt.Println(readersReady)
	select {} // ended by the benchmark
}

// reader does what an open page does, without showing it.
type reader struct {
	base, token, user string
	hc                *http.Client
	ready             func()
}

func (r *reader) get(path string) (*http.Response, error) {
	req, err := http.NewRequest("GET", r.base+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+r.token)
	answer, err := r.hc.Do(req)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, answer.Status)
	}
	return answer, err
}

func (r *reader) list(more string) {
	answer, err := r.get("/v1/jobs?fold=true&newest=true&offset=0&limit=50&user=" + r.user + more)
	if err != nil {
		broken(err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
}

func (r *reader) run() {
	r.list("")
	answer, err := r.get("/v1/events?user=" + r.user)
	if err != nil {
		broken(err)
	}
	defer answer.Body.Close()
	moved := make(chan time.Time, 1) // when the first change was heard that is not read
	var every atomic.Int64           // milliseconds
	go func() {                      // reads the stream; ends with it
		for scan := bufio.NewScanner(answer.Body); scan.Scan(); {
			data, ok := strings.CutPrefix(scan.Text(), "data: ")
			if !ok {
				continue
			}
			r.ready()
			var e struct {
				UUID, State, Was string
				EveryMS          int64
			}
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				broken(err)
			}
			if e.EveryMS > 0 {
				every.Store(e.EveryMS)
			} else if part(e.Was) != part(e.State) {
				select {
				case moved <- time.Now():
				default:
				}
			}
		}
	}()
	poll := time.NewTimer(rand.N(pagePoll))
	for {
		select {
		case first := <-moved: // of a line that is drawn already, or of another user's
			<-time.After(time.Duration(every.Load()) * time.Millisecond)
			r.list(fmt.Sprintf("&maxAge=%d", int(time.Since(first).Seconds())))
			poll.Reset(pagePoll) // what was read for changes is not read for this as well
		case <-poll.C:
			r.list("&maxAge=5")
			poll.Reset(pagePoll)
		}
	}
}

// part is the part of a list in which the page has a job of a state.
func part(state string) int {
	switch state {
	case "QUEUED", "ONHOLD":
		return 1
	case "FINISHED", "FAILED", "CANCELLED", "HALTED":
		return 2
	case "":
		return 3
	}
	return 0
}
