package events

import (
	"testing"
)

func TestWatchersAreBounded(t *testing.T) {
	var w watchers
	var leave []func()
	for range PerUser {
		l, err := w.enter("ann", PerUser)
		if err != nil {
			t.Fatal(err)
		}
		leave = append(leave, l)
	}
	if _, err := w.enter("ann", PerUser); err == nil {
		t.Error("one more was let in")
	}
	if _, err := w.enter("bob", PerUser); err != nil {
		t.Error(err)
	}
	leave[0]()
	if _, err := w.enter("ann", PerUser); err != nil {
		t.Error(err)
	}
}
