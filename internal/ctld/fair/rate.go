package fair

import "time"

// burst is for how many seconds of its rate a user may ask at once.
const burst = 10

// Rates counts how often users ask. The zero value is ready.
type Rates struct {
	due   map[string]int64 // when what a user spent has come back, in nanoseconds; users of the past are left out
	swept int              // users after the last sweep
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
	at := now.UnixNano()
	if r.due[user] > at+int64(most) { // the clock was set back: nobody spends more than most
		r.due[user] = at + int64(most)
	}
	next := max(r.due[user], at) + int64(cost)
	if late := next - at - int64(most); late > 0 {
		return time.Duration(late)
	}
	if r.due == nil {
		r.due = map[string]int64{}
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
		r.due[user] -= int64(cost) // below the present is no more than all
	}
}
