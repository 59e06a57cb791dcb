package rank

// pause makes the container stand still or go on, as it is ordered or held. A daemon that took
// the rank over does not know which it does, and waits for the order.
func (w *watch) pause() {
	want := w.r.state.still()
	if want == nil || w.frozen != nil && *w.frozen == *want {
		w.tellStanding()
		return
	}
	if err := w.r.container.Stand(*want); err != nil {
		if !w.told {
			w.r.log.Error("have the rank's processes stand still or go on; trying again", "still", *want, "error", err)
		}
		w.frozen, w.told = nil, true // tried at the next look
		return
	}
	w.frozen, w.told = want, false
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
		_ = w.r.container.Stand(false) // it may have ended, and a kill needs no such thing
		w.frozen = new(false)
	}
}
