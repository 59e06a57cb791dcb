import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'

// useSight says which lines of a list, all of one height, are in sight in the box
// that it gives, and some more on both sides, as far as the box was scrolled.
export function useSight(list: { lines: number; height: number; more: number }) {
  const box = useRef<HTMLDivElement>(null)
  const [top, scroll] = useState(0)
  const [seen, measure] = useState(800)
  useLayoutEffect(() => {
    const el = box.current!
    const watch = new ResizeObserver(() => measure(el.clientHeight))
    watch.observe(el)
    return () => watch.disconnect()
  }, [])
  const last = Math.min(Math.ceil((top + seen) / list.height) + list.more, list.lines)
  return {
    box,
    first: Math.max(Math.min(Math.floor(top / list.height) - list.more, last), 0), // the list may have become shorter
    last,
    scrolled: () => scroll(box.current!.scrollTop),
  }
}

// Virtual draws those lines of a long list that are in sight, and a few more, and
// tells which they are. All lines are of one height.
export function Virtual(props: {
  count: number
  height: number // of a line, in pixels
  label: string
  head: ComponentChildren
  line: (index: number) => ComponentChildren
  see: (first: number, last: number) => void
}) {
  const { box, first, last, scrolled } = useSight({ lines: props.count, height: props.height, more: 10 })
  useEffect(() => props.see(first, last))
  return (
    <div class="virtual" ref={box} tabIndex={0} role="region" aria-label={props.label} onScroll={scrolled}>
      <table aria-rowcount={props.count + 1}>
        <thead>{props.head}</thead>
        <tbody>
          <tr aria-hidden="true" style={{ height: first * props.height + 'px' }} />
          {Array.from({ length: last - first }, (_, i) => props.line(first + i))}
          <tr aria-hidden="true" style={{ height: (props.count - last) * props.height + 'px' }} />
        </tbody>
      </table>
    </div>
  )
}
