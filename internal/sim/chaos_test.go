package sim

import "testing"

// TestChaos lives random histories: every invariant holds after every step, and
// a restart at any point changes no plan.
func TestChaos(t *testing.T) {
	seeds, steps := uint64(40), 400
	if testing.Short() {
		seeds = 5
	}
	var all Tally
	for seed := range seeds {
		tally, err := Chaos{Seed: seed, Nodes: 3 + int(seed%4), Steps: steps}.Run()
		if err != nil {
			t.Fatal(err)
		}
		all.Compared += tally.Compared
		all.Restarts += tally.Restarts
		all.Started += tally.Started
		all.Ended += tally.Ended
		all.Losses += tally.Losses
		all.Silences += tally.Silences
		all.Awaited += tally.Awaited
		all.Halted += tally.Halted
		all.Resized += tally.Resized
		all.Days += tally.Days
		all.Gangs += tally.Gangs
		all.Corr += tally.Corr
		all.Made += tally.Made
		all.Idle += tally.Idle
	}
	t.Logf("%+v", all)
	if all.Compared == 0 || all.Started == 0 || all.Ended == 0 || all.Losses == 0 || all.Silences == 0 || all.Awaited == 0 || all.Halted == 0 || all.Resized == 0 || all.Days == 0 ||
		all.Gangs == 0 || all.Corr == 0 || all.Made == 0 || all.Idle == 0 {
		t.Errorf("something never happened: %+v", all)
	}
}

// TestChaosIsRepeatable proves that a seed says everything.
func TestChaosIsRepeatable(t *testing.T) {
	run := func() Tally {
		tally, err := Chaos{Seed: 7, Nodes: 4, Steps: 300}.Run()
		if err != nil {
			t.Fatal(err)
		}
		return tally
	}
	if a, b := run(), run(); a != b {
		t.Errorf("the same seed gave %+v and %+v", a, b)
	}
}

// TestChaosEnds proves that every job of a random history starts in the end, or
// fails, whatever it waited for.
func TestChaosEnds(t *testing.T) {
	for seed := range uint64(6) {
		if _, err := (Chaos{Seed: 100 + seed, Nodes: 4, Steps: 150, Calm: true}).Run(); err != nil {
			t.Fatal(err)
		}
	}
}
