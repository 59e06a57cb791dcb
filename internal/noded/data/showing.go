package data

import (
	"fmt"
	"sync"

	"gbatch/internal/noded/config"
)

// showing tells how far several transfers of a rank are.
type showing struct {
	progress func(text string)
	what     string

	mu          sync.Mutex // guards what follows
	here, all   int        // transfers
	done, total []int64    // bytes of each; -1: not known
	sum, told   int64      // of done, and what of it was told
}

func (s *showing) init(progress func(string), what string, n int) {
	s.progress, s.what, s.all = progress, what, n
	s.done, s.total = make([]int64, n), make([]int64, n)
	s.tell()
}

// part is what the i-th transfer calls with its progress.
func (s *showing) part(i int) func(done, total int64) {
	return func(done, total int64) {
		s.mu.Lock()
		s.sum += done - s.done[i]
		s.done[i], s.total[i] = done, total
		more := s.sum - s.told
		s.mu.Unlock()
		if more >= 1<<20 || more < 0 || done == total {
			s.tell()
		}
	}
}

// one says that a transfer has come to its end.
func (s *showing) one() {
	s.mu.Lock()
	s.here++
	s.mu.Unlock()
	s.tell()
}

func (s *showing) tell() {
	s.mu.Lock()
	s.told = s.sum
	done, total := s.sum, int64(0)
	for i := range s.total {
		if s.total[i] < 0 || total < 0 {
			total = -1
		} else {
			total += s.total[i]
		}
	}
	text := fmt.Sprintf("%s %d of %d", s.what, min(s.here+1, s.all), s.all)
	switch {
	case total > 0:
		text += fmt.Sprintf(": %s of %s", config.FormatBytes(done), config.FormatBytes(total))
	case done > 0:
		text += ": " + config.FormatBytes(done)
	}
	s.mu.Unlock()
	s.progress(text)
}
