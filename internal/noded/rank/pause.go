package rank

// pause makes the container stand still or go on, as ordered. A daemon that took
// the rank over does not know which it does, and waits for the order.
func (w *watch) pause() {
	w.r.state.mu.Lock()
	want := w.r.state.paused
	w.r.state.mu.Unlock()
	if want == nil || w.frozen != nil && *w.frozen == *want {
		return
	}
	change, what := w.r.container.Pause, "pause rank"
	if !*want {
		change, what = w.r.container.Resume, "let rank go on"
	}
	err := change()
	if err != nil && w.frozen != nil {
		w.r.log.Error(what, "error", err)
		w.frozen = nil // tried again at the next change
		return
	}
	// Where it was not known, the shim refuses what is so already.
	w.frozen = want
	w.r.log.Info("rank's processes stand still or go on, as ordered", "still", *want)
}

// thaw lets a rank that is to end hear its signal.
func (w *watch) thaw() {
	if w.running && (w.frozen == nil || *w.frozen) {
		_ = w.r.container.Resume() // refused if it did not stand still
		w.frozen = new(false)
	}
}
