// Package exporter tells how the node fares: to Prometheus, under names of its
// own and of NVIDIA's exporter, and to that exporter which jobs hold which
// GPU. It reads the node and changes nothing of it.
package exporter
