package rank

// pause makes the container stand still or go on, as it is ordered or held. A daemon that took
// the rank over does not know which it does, and waits for the order.
func (w *watch) pause() {
	want := w.r.state.still()
	if want == nil || w.frozen != nil && *w.frozen == *want {
		w.tellStanding()
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
	w.tellStanding()
	w.r.log.Info("rank's processes stand still or go on, as they shall", "still", *want)
}

func (w *watch) tellStanding() {
	if w.frozen != nil && *w.frozen {
		w.r.state.stands()
	}
}

// thaw lets a rank that is to end hear its signal.
func (w *watch) thaw() {
	w.r.state.breakHolds()
	if w.running && (w.frozen == nil || *w.frozen) {
		_ = w.r.container.Resume() // refused if it did not stand still
		w.frozen = new(false)
	}
}
