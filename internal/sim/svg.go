package sim

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strings"

	"gbatch/sched"
)

// Curve is a named replay to be drawn.
type Curve struct {
	Name   string
	Config config
	Result result
}

// The size of a plot, and of its two panels.
const (
	plotWidth, plotHeight = 720, 480
	left, right           = 60, 20
	panelTop, panelHeight = 40, 180
	panelStep             = 230
)

var colors = []string{"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e"}

// SVG is a picture of replays: how many jobs waited how long at most, and how
// much of the machine was in use when.
func SVG(curves ...Curve) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", plotWidth, plotHeight)
	frame(&b, panelTop, "jobs that waited at most", []string{"1 s", "10 s", "100 s", "1000 s", "10^4 s", "10^5 s", "10^6 s"})
	frame(&b, panelTop+panelStep, "of the machine in use", days(curves))
	for i, c := range curves {
		color := colors[i%len(colors)]
		line(&b, color, panelTop, waitPoints(c))
		line(&b, color, panelTop+panelStep, usePoints(c, span(curves)))
		fmt.Fprintf(&b, `<text x="%d" y="20" fill="%s">%s</text>`+"\n", left+i*160, color, escape(c.Name))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return b.String()
}

// frame is the axes of a panel: shares from 0 to 1 upwards, ticks along.
func frame(b *strings.Builder, top int, title string, ticks []string) {
	width := plotWidth - left - right
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#888"/>`+"\n", left, top, width, panelHeight)
	fmt.Fprintf(b, `<text x="%d" y="%d">%s</text>`+"\n", left+6, top+14, escape(title))
	for i := range 5 {
		y := top + panelHeight - i*panelHeight/4
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%d %%</text>`+"\n", left-6, y+4, i*25)
		fmt.Fprintf(b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#ddd"/>`+"\n", left, y, left+width, y)
	}
	for i, t := range ticks {
		x := left + i*width/max(len(ticks)-1, 1)
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", x, top+panelHeight+16, t)
	}
}

// line draws points of 0..1 in both directions.
func line(b *strings.Builder, color string, top int, points [][2]float64) {
	fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="1.5" points="`, color)
	for _, p := range points {
		fmt.Fprintf(b, "%.1f,%.1f ", left+p[0]*(plotWidth-left-right), float64(top)+(1-p[1])*panelHeight)
	}
	b.WriteString("\"/>\n")
}

// steps is how many points a curve has at most.
const steps = 300

// waitPoints is the share of jobs by how long they waited at most, from 1 s to
// 10^6 s on a logarithmic axis.
func waitPoints(c Curve) [][2]float64 {
	var waits []sched.Time
	for i, o := range c.Result.Outcomes {
		if o.Start >= 0 {
			waits = append(waits, o.Start-c.Config.Jobs[i].Submit)
		}
	}
	slices.Sort(waits)
	var out [][2]float64
	for s := range steps + 1 {
		x := float64(s) / steps
		limit := sched.Time(math.Pow(10, 6*x) * 1000)
		n, _ := slices.BinarySearch(waits, limit+1)
		out = append(out, [2]float64{x, float64(n) / float64(max(len(waits), 1))})
	}
	return out
}

// span is when the last job of all ended.
func span(curves []Curve) sched.Time {
	last := sched.Time(1)
	for _, c := range curves {
		last = max(last, c.Result.LastEnd)
		for i := range c.Config.Jobs {
			last = max(last, c.Config.Jobs[i].Submit)
		}
	}
	return last
}

func days(curves []Curve) []string {
	last := float64(span(curves)) / float64(sched.Day)
	var out []string
	for i := range 5 {
		out = append(out, fmt.Sprintf("day %.3g", last*float64(i)/4))
	}
	return out
}

// usePoints is the share of GPUs, or where there are none of cores, in use: the
// mean over each step.
func usePoints(c Curve, last sched.Time) [][2]float64 {
	use := make([]float64, steps)
	width := float64(last) / steps
	for i, o := range c.Result.Outcomes {
		if o.Start < 0 {
			continue
		}
		end := o.End
		if end < 0 {
			end = last
		}
		amount := part(c, c.Config.Jobs[i].Shape)
		for s := int(float64(o.Start) / width); s < steps && float64(s)*width < float64(end); s++ {
			from, to := max(float64(s)*width, float64(o.Start)), min(float64(s+1)*width, float64(end))
			use[s] += amount * max(to-from, 0) / width
		}
	}
	out := make([][2]float64, steps)
	for s := range use {
		out[s] = [2]float64{float64(s) / steps, min(use[s], 1)}
	}
	return out
}

// part is the part of the machine that a job holds.
func part(c Curve, x *sched.Shape) float64 {
	n := float64(x.Ranks())
	if c.Result.GPUs > 0 {
		return n * float64(x.MilliGPU) / float64(c.Result.GPUs)
	}
	return n * float64(x.MilliCPU) / float64(cmp.Or(c.Result.Cores, 1))
}
