package accounting

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Config is how usage is billed and forgotten.
type Config struct {
	HalfLifeMS int64 `json:"halfLifeMs"` // after which usage counts half; above 0

	// Billing: a rank costs the dominant of its GPU, CPU and memory share, in
	// thousandths of a GPU of weight 1000.
	Models map[string]int64 `json:"models,omitempty"` // weight by part of the model's name, any case; the longest that matches counts; 1000 where none does
	CPU    int64            `json:"cpu"`              // of one core, in thousandths
	GiB    int64            `json:"gib"`              // of one GiB of memory, in thousandths

	Tree Tree `json:"tree,omitempty"`
}

// Bounds of the configuration, so that products cannot overflow.
const (
	maxWeight   = 1_000_000
	maxHalfLife = 100 * 365 * 86_400_000
	maxBudget   = 1 << 40
)

// DefaultConfig halves usage every 7 days and bills a core as 1/16 and a GiB as
// 1/128 of a GPU: the shares of a node with 8 GPUs, 128 cores and 1 TiB.
func DefaultConfig() Config {
	return Config{HalfLifeMS: 7 * 86_400_000, CPU: 62, GiB: 7}
}

// Validate reports everything that is wrong with the configuration.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.HalfLifeMS < 1 || c.HalfLifeMS > maxHalfLife {
		bad("halfLifeMs is %d: want 1..%d", c.HalfLifeMS, int64(maxHalfLife))
	}
	if c.CPU < 0 || c.CPU > maxWeight || c.GiB < 0 || c.GiB > maxWeight {
		bad("cpu and gib weigh %d and %d: want 0..%d", c.CPU, c.GiB, maxWeight)
	}
	for _, m := range slices.Sorted(maps.Keys(c.Models)) {
		if w := c.Models[m]; w < 0 || w > maxWeight {
			bad("models.%s weighs %d: want 0..%d", m, w, maxWeight)
		}
	}
	if err := c.Tree.validate(); err != nil {
		bad("tree: %w", err)
	}
	return errors.Join(errs...)
}

// Rate is what a rank costs per millisecond: the dominant of its GPU, CPU and
// memory share for Billed.
func (c Config) Rate(ch Charge) Amount {
	billed := max(
		ch.MilliGPU*c.weight(ch.Model)/1000,
		ch.MilliCPU*c.CPU/1000,
		ch.MemMiB*c.GiB/1024,
	)
	return Amount{ch.MilliGPU, ch.MilliCPU, ch.MemMiB, billed}
}

// weight of a GPU model in thousandths.
func (c Config) weight(model string) int64 {
	model = strings.ToLower(model)
	best, name := int64(1000), ""
	for m, w := range c.Models { // the longest name wins, then the first: order does not matter
		if strings.Contains(model, strings.ToLower(m)) && (len(m) > len(name) || len(m) == len(name) && m < name) {
			best, name = w, m
		}
	}
	return best
}
