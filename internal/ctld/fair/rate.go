package fair

import "time"

// burst is for how many seconds of its rate a user may ask at once.
const burst = 10

// Rates counts how often users ask. The zero value is ready. It goes by the time that has
// passed, whatever a clock on the wall is set to meanwhile.
type Rates struct {
	began time.Time                // of the first that asked
	due   map[string]time.Duration // after began, when what a user spent has come back; users of the past are left out
	swept int                      // users after the last sweep
}

// Take counts a request of a user who may make so many a second; 0: any number.
// Wait is how long to wait before one of that cost is taken; 0: it was.
func (r *Rates) Take(now time.Time, user string, perSecond, cost int64) (wait time.Duration) {
	if perSecond <= 0 {
		return 0
	}
	return r.Spend(now, user, time.Duration(cost*int64(time.Second)/perSecond), burst*time.Second)
}

// Spend takes of the time that a user has, which comes back as time goes by, up to
// most. Wait is how long to wait before there is so much of it; 0: it was taken.
func (r *Rates) Spend(now time.Time, user string, cost, most time.Duration) (wait time.Duration) {
	if r.due == nil {
		r.began, r.due = now, map[string]time.Duration{}
	}
	at := now.Sub(r.began)
	next := max(r.due[user], at) + cost
	if late := next - at - most; late > 0 {
		return late
	}
	r.due[user] = next
	if len(r.due) > 2*r.swept+1000 {
		for u, t := range r.due {
			if t <= at {
				delete(r.due, u)
			}
		}
		r.swept = len(r.due)
	}
	return 0
}

// Return gives back what a user spent for nothing.
func (r *Rates) Return(user string, cost time.Duration) {
	if r.due != nil {
		r.due[user] -= cost // below the present is no more than all
	}
}
