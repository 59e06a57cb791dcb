package chaos

import (
	"flag"
	"slices"
	"testing"
	"time"
)

var (
	seeds   = flag.Int("chaos.seeds", 6, "histories of TestChaos")
	from    = flag.Uint64("chaos.from", 1, "the first seed")
	hours   = flag.Float64("chaos.hours", 1, "simulated hours of each")
	many    = flag.Int("chaos.controllers", 1, "controllers of the site: 1, 3 or 5")
	every   = flag.Duration("chaos.every", 40*time.Second, "a fault comes so often on average")
	shorten = flag.Int("chaos.tries", 200, "histories that are lived to shorten one in which something does not hold")
	bugs    = flag.Bool("chaos.planted", false, "put in bugs, one at a time, and look whether each is found: minutes of a processor")
)

// usual is the history of a seed.
func usual(seed uint64, lasts time.Duration) history {
	const nodes = 4
	return history{seed: seed, nodes: nodes, clients: 3, lasts: lasts, faults: drawFaults(seed, nodes, lasts, *every)}
}

// severally is the history of a seed with several controllers.
func severally(seed uint64, controllers int, lasts time.Duration) history {
	h := history{seed: seed, nodes: 4, clients: 3, controllers: controllers, lasts: lasts}
	h.faults = drawSeveral(seed, h, *every)
	return h
}

// TestChaos: whatever befalls its parts, a site keeps its word.
func TestChaos(t *testing.T) {
	lasts := time.Duration(*hours * float64(time.Hour))
	through(t, *from, *seeds, func(seed uint64) history {
		if *many > 1 {
			return severally(seed, *many, lasts)
		}
		return usual(seed, lasts)
	})
}

// TestChaosSeverally: so does one with three controllers.
func TestChaosSeverally(t *testing.T) {
	through(t, 1, 3, func(seed uint64) history { return severally(seed, 3, 30*time.Minute) })
}

// through lives through the histories of seeds.
func through(t *testing.T, from uint64, seeds int, of func(seed uint64) history) {
	sum := tally{faults: map[string]int{}, states: map[string]bool{}}
	took, histories, began := time.Duration(0), 0, time.Now()
	for seed := from; seed < from+uint64(seeds); seed++ {
		h := of(seed)
		out := live(t, h)
		sum.add(out.tally)
		took, histories = took+out.took, histories+1
		if out.violation == "" {
			continue
		}
		t.Logf("seed %d: %s; it is shortened", seed, out.violation) // which takes as long as many seeds
		least, why := shrink(t, h, out.violation)
		t.Errorf("seed %d: %s\nWith the fewest faults (repeat it by -chaos.from %d -chaos.seeds 1 -chaos.hours %g -chaos.controllers %d -chaos.every %s): %s", seed, out.violation, seed, h.lasts.Hours(), max(1, h.controllers), *every, why)
		for _, f := range least.faults {
			t.Logf("  %s", f)
		}
		for _, l := range out.lines[max(0, len(out.lines)-40):] {
			t.Log(l)
		}
	}
	real := time.Since(began)
	t.Logf("%d histories, %s simulated in %s: %.1f faults a second\n%s", histories, took.Round(time.Minute), real.Round(time.Second), float64(sum.befell())/real.Seconds(), sum)
}

// shrink leaves out faults of a history while something in it still does not hold.
func shrink(t *testing.T, h history, why string) (history, string) {
	lived := 0
	for part := max(1, len(h.faults)/2); part > 0 && lived < *shorten; {
		left := false
		for at := 0; at < len(h.faults) && lived < *shorten; {
			less := h
			less.faults = slices.Concat(h.faults[:at], h.faults[min(at+part, len(h.faults)):])
			lived++
			if out := live(t, less); out.violation != "" {
				h, why, left = less, out.violation, true
			} else {
				at += part
			}
		}
		if !left || part > 1 {
			part /= 2
		}
	}
	return h, why
}

// TestSameSeedSameHistory: a seed has one history.
func TestSameSeedSameHistory(t *testing.T) {
	for seed := range uint64(3) {
		sameHistory(t, usual(seed+1, 20*time.Minute))
		sameHistory(t, severally(seed+1, 3, 10*time.Minute))
	}
}

func sameHistory(t *testing.T, h history) {
	t.Helper()
	first := live(t, h)
	for range 2 {
		again := live(t, h)
		if first.trace == again.trace {
			continue
		}
		for i, l := range first.lines {
			if i >= len(again.lines) || l != again.lines[i] {
				t.Fatalf("seed %d with %d controllers has two histories; line %d differs: %q", h.seed, h.controllers, i, l)
			}
		}
		t.Fatalf("seed %d with %d controllers has two histories", h.seed, h.controllers)
	}
}
