package signals

import (
	"time"

	"golang.org/x/sys/unix"
)

// HangUpGrace is how long the processes of a session have between HUP and KILL.
const HangUpGrace = 3 * time.Second

// HangUp ends a session's first process and what it started there, of all those that are
// in a container, as the loss of a terminal does, and kills what does not go.
func HangUp(leader int, all func() ([]int, error)) {
	members := func() []int {
		pids, err := all()
		if err != nil {
			return []int{leader}
		}
		return Session(leader, pids)
	}
	_ = All(members(), unix.SIGHUP) // who has gone meanwhile needs none
	for end := time.Now().Add(HangUpGrace); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if len(members()) == 0 {
			return
		}
	}
	_ = All(members(), unix.SIGKILL)
}
