import type * as api from './api'
import { spansOf } from './spans'
import { over } from './states'
import { duration } from './words'

// Waterfall draws where a job's time went: queued, prepared, running, being ended,
// over all of its tries.
export function Waterfall(props: { job: api.JobDetail }) {
  const j = props.job
  const spans = spansOf(j.events ?? [], j.submitted, over(j), Date.now())
  const begin = spans[0]?.begin ?? 0
  const whole = (spans[spans.length - 1]?.end ?? 0) - begin
  if (whole <= 0) return null
  return (
    <figure class="waterfall" aria-label="Where its time went">
      <div class="track">
        {spans.map((s) => (
          <span
            key={s.state + s.begin}
            class={'span ' + s.kind}
            title={`${s.state} ${duration((s.end - s.begin) / 1000)}`}
            style={{ left: (100 * (s.begin - begin)) / whole + '%', width: Math.max((100 * (s.end - s.begin)) / whole, 0.3) + '%' }}
          />
        ))}
      </div>
      <figcaption>
        {sums(spans).map(([state, kind, ms]) => (
          <span key={state}>
            <i class={'key ' + kind} aria-hidden="true" /> {state.toLowerCase()} {duration(ms / 1000)}
          </span>
        ))}
      </figcaption>
    </figure>
  )
}

function sums(spans: ReturnType<typeof spansOf>): [string, string, number][] {
  const by = new Map<string, [string, string, number]>()
  for (const s of spans) {
    const sum = by.get(s.state) ?? [s.state, s.kind, 0]
    sum[2] += s.end - s.begin
    by.set(s.state, sum)
  }
  return [...by.values()]
}
