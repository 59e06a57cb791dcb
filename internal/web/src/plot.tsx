import { useEffect, useRef } from 'preact/hooks'
import UPlot from 'uplot'
import { type Numbers, summary } from './points'

// Curve is one of a plot, with a colour of the style sheet.
export interface Curve {
  name: string
  colour: string
  values: Numbers
}

// Plot draws curves over their time, up to what was granted if that is more. What
// it shows is said in words, too.
export default function Plot(props: { title: string; times: number[]; curves: Curve[]; granted?: number; write: (n: number) => string }) {
  const { title, times, curves, granted, write } = props
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<UPlot | undefined>(undefined)
  const data = [times, ...curves.map((c) => c.values), ...(granted ? [times.map(() => granted)] : [])] as UPlot.AlignedData
  useEffect(() => {
    const el = box.current!
    const made = new UPlot(options(title, el.clientWidth, curves, granted, write), data, el)
    plot.current = made
    const sizes = new ResizeObserver(() => made.setSize({ width: el.clientWidth, height }))
    sizes.observe(el)
    return () => {
      sizes.disconnect()
      made.destroy()
    }
  }, [title, curves.length, granted])
  useEffect(() => plot.current?.setData(data), [times])
  return (
    <figure class="plot" aria-label={title}>
      <figcaption>
        <b>{title}</b>{' '}
        {curves.map((c) => (
          <span key={c.name} class="quiet">
            {curves.length > 1 && c.name + ': '}
            {summary(c.values, write)}{' '}
          </span>
        ))}
        {granted ? <span class="quiet">of {write(granted)}</span> : null}
      </figcaption>
      <div ref={box} aria-hidden="true" />
    </figure>
  )
}

const height = 150

function options(title: string, width: number, curves: Curve[], granted: number | undefined, write: (n: number) => string): UPlot.Options {
  const look = getComputedStyle(document.documentElement)
  const colour = (name: string) => look.getPropertyValue('--' + name)
  const value = (_: UPlot, n: number | null) => (n === null ? '' : write(n))
  const axis = { stroke: colour('quiet'), grid: { stroke: colour('line'), width: 1 }, ticks: { stroke: colour('line'), width: 1 } }
  return {
    width,
    height,
    cursor: { sync: { key: 'use' }, drag: { x: true, y: false } },
    scales: { y: { range: (_, __, most) => [0, most || 1] } },
    axes: [axis, { ...axis, size: 70, values: (_, marks) => marks.map(write) }],
    series: [
      { label: 'Time' },
      ...curves.map((c) => ({ label: c.name || title, stroke: colour(c.colour), width: 1.5, value })),
      ...(granted ? [{ label: 'granted', stroke: colour('quiet'), width: 1, dash: [4, 4], value }] : []),
    ],
  }
}
