import type * as api from './api'
import { duration } from './words'

// Placed is a span with its place in a node's line, in hundredths of its width, and
// in one of so many rows that do not overlap.
export interface Placed {
  span: api.PlanSpan
  left: number
  width: number
  row: number
  rows: number
}

// stacked places spans below each other where they overlap. What lies outside of
// the time that is shown is left out.
export function stacked(spans: api.PlanSpan[], from: number, span: number): Placed[] {
  const ends: number[] = [] // of each row
  const out: Placed[] = []
  for (const s of spans) {
    const begins = Math.max(Date.parse(s.start), from)
    const ended = s.end ? Math.max(Date.parse(s.end), from + span / 100) : Infinity // what is being ended is there still
    if (begins >= from + span) continue
    let row = ends.findIndex((e) => e <= begins)
    if (row < 0) row = ends.length
    ends[row] = ended
    out.push({ span: s, left: ((begins - from) / span) * 100, width: ((Math.min(ended, from + span) - begins) / span) * 100, row, rows: 0 })
  }
  return out.map((b) => ({ ...b, rows: ends.length }))
}

// wordsOf says of a span what its bar shows.
export function wordsOf(s: api.PlanSpan, gpus: number): string {
  const clock = (at: string) => new Date(at).toLocaleString([], { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' })
  const what = s.job ? `job ${s.job}${s.name ? ' ' + s.name : ''} of ${s.user}` : s.name ? s.name : "another user's job"
  const size = s.gpus ? `, ${s.gpus} of ${gpus} GPUs` : s.cpus ? `, ${s.cpus} CPUs` : ''
  const time = s.end ? `from ${clock(s.start)} until ${clock(s.end)}, ${duration((Date.parse(s.end) - Date.parse(s.start)) / 1000)}` : `from ${clock(s.start)}, without a limit`
  return `${s.kind}: ${what}${size}, ${time}`
}
