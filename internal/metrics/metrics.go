// Package metrics is what the metrics of both daemons have in common: families
// that are read at scrape time, labels that no job, user or node can break a
// scrape with, bounds on how many there are, and the handler. It measures
// nothing itself. A Set belongs to the scrape that it is made for.
package metrics

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Family is one metric that is read at scrape time.
type Family struct {
	Name, Help string
	Kind       prometheus.ValueType
	Labels     []string
}

// Gauge is a family whose values go up and down.
func Gauge(name, help string, labels ...string) Family {
	return Family{name, help, prometheus.GaugeValue, labels}
}

// Counter is a family whose values only grow, until the daemon restarts.
func Counter(name, help string, labels ...string) Family {
	return Family{name, help, prometheus.CounterValue, labels}
}

// desc is the family as client_golang has it.
func (f Family) desc() *prometheus.Desc { return prometheus.NewDesc(f.Name, f.Help, f.Labels, nil) }

// Collector reads families at scrape time. Collect is called once for each
// scrape, by several goroutines at once.
type Collector struct {
	Families []Family
	Read     func(*Set)
}

// Describe is for the registry.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range c.Families {
		ch <- f.desc()
	}
}

// Collect is for the registry.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	set := &Set{values: map[string]*sum{}}
	c.Read(set)
	descs := make(map[string]*prometheus.Desc, len(c.Families))
	for _, f := range c.Families {
		descs[f.Name] = f.desc()
	}
	for _, key := range set.order {
		s := set.values[key]
		ch <- prometheus.MustNewConstMetric(descs[s.of.Name], s.of.Kind, s.value, s.labels...)
	}
}

// Set is the values of one scrape.
type Set struct {
	values map[string]*sum
	order  []string
}

type sum struct {
	of     Family
	labels []string
	value  float64
}

// Add adds to the value with these labels. What different names come to the
// same label is added up: two equal series would break the whole scrape.
func (s *Set) Add(f Family, value float64, labels ...string) {
	if len(labels) != len(f.Labels) {
		panic("metric " + f.Name + ": wrong number of labels")
	}
	clean := make([]string, len(labels))
	for i, l := range labels {
		clean[i] = labelValue(l)
	}
	key := f.Name + "\xff" + strings.Join(clean, "\xff") // no label has such a byte
	if old := s.values[key]; old != nil {
		old.value += value
		return
	}
	s.values[key] = &sum{f, clean, value}
	s.order = append(s.order, key)
}

// maxLabel bounds a label's value, in bytes.
const maxLabel = 128

// labelValue makes a label's value of any text: valid UTF-8 of bounded length. The
// text format itself quotes what has a meaning in it.
func labelValue(s string) string {
	if len(s) > maxLabel {
		s = s[:maxLabel]
		for i := 0; i < utf8.UTFMax && !utf8.ValidString(s[max(0, len(s)-utf8.UTFMax):]); i++ {
			s = s[:len(s)-1] // cut within a rune
		}
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// atOnce bounds the scrapes under way: each holds its answer in memory until
// it is read. More are refused with 503.
const atOnce = 8

// Handler serves what is registered. A family that cannot be read is left out
// and the others are served.
func Handler(reg *prometheus.Registry) http.Handler {
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{MaxRequestsInFlight: atOnce, ErrorHandling: promhttp.ContinueOnError})
}

// Other is the label of those that have none of their own.
const Other = "other"

// Top says which names keep their label: the n of the largest weight, ties by
// name. All others are Other.
func Top(weight map[string]float64, n int) func(string) string {
	names := slices.SortedFunc(maps.Keys(weight), func(a, b string) int {
		return cmp.Or(cmp.Compare(weight[b], weight[a]), cmp.Compare(a, b))
	})
	keeps := map[string]bool{}
	for _, name := range names[:min(n, len(names))] {
		keeps[name] = true
	}
	return func(name string) string {
		if keeps[name] {
			return name
		}
		return Other
	}
}

// First gives a label of their own to the first Max names that it is asked for,
// and Other to all that come later: for counters, whose labels must not change.
type First struct {
	Max int

	mu   sync.Mutex
	have map[string]bool
}

// Label is the label of a name.
func (f *First) Label(name string) string {
	name = labelValue(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.have == nil {
		f.have = map[string]bool{}
	}
	if !f.have[name] {
		if len(f.have) >= f.Max {
			return Other
		}
		f.have[name] = true
	}
	return name
}
