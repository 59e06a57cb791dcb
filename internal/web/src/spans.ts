import type * as api from './api'

// Span is a time that a job spent in one state.
export interface Span {
  state: string
  kind: string // how it is drawn
  begin: number // milliseconds since 1970
  end: number
}

const kinds: Record<string, string> = { QUEUED: 'waits', ONHOLD: 'waits', ASSIGNED: 'prepares', STARTING: 'prepares', RUNNING: 'runs' }

// spansOf are the times between the changes of state in a job's timeline, from its
// submission to its end, or to now.
export function spansOf(events: api.Event[], submitted: string, over: boolean, now: number): Span[] {
  const marks = [{ state: 'QUEUED', at: Date.parse(submitted) }]
  for (const e of events) {
    if (!e.state) continue
    const at = Date.parse(e.time)
    if (marks.length === 1 && at - marks[0]!.at < 5) marks.pop() // how it began
    marks.push({ state: e.state, at })
  }
  const out: Span[] = []
  marks.forEach((m, i) => {
    const next = marks[i + 1]
    const end = next ? next.at : over ? m.at : now
    if (end <= m.at) return
    const before = out[out.length - 1]
    if (before && before.state === m.state && before.end === m.at) before.end = end
    else out.push({ state: m.state, kind: kinds[m.state] ?? 'ends', begin: m.at, end })
  })
  return out
}
