package moments

import "testing"

// TestList: moments come in their order, each once, and none before its time.
func TestList(t *testing.T) {
	var l List
	for _, m := range []Moment{{At: 30, Job: 1}, {At: 10, Job: 3}, {At: 10, Job: 2}, {At: 30, Job: 1}} {
		l.Add(m)
	}
	if next, ok := l.Next(); next != 10 || !ok || !l.Has(Moment{At: 30, Job: 1}) || l.Has(Moment{At: 30, Job: 2}) || l.Check() != nil {
		t.Errorf("%+v: next %d, %t", l, next, ok)
	}
	for _, want := range []Moment{{At: 10, Job: 2}, {At: 10, Job: 3}} {
		if got, ok := l.Take(29); !ok || got != want {
			t.Errorf("%+v, %t, want %+v", got, ok, want)
		}
	}
	if m, ok := l.Take(29); ok {
		t.Errorf("%+v before its time", m)
	}
	if _, ok := l.Take(30); !ok {
		t.Error("nothing at its time")
	}
	if m, ok := l.Take(31); ok {
		t.Errorf("%+v twice", m)
	}
}

func TestCheck(t *testing.T) {
	if l := (List{[]Moment{{At: 2, Job: 1}, {At: 1, Job: 1}}}); l.Check() == nil {
		t.Error("moments out of order pass")
	}
}
